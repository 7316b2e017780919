import type { BatchLimits } from '../deliver/open-batch.js';
import {
  type DeliveryPorts,
  SerialDelivery,
} from '../deliver/serial-delivery.js';
import type {
  Arrival,
  ArrivingWork,
  ChunkWork,
  MessageWork,
  SingleWork,
  TransactionWork,
  Work,
} from '../deliver/work.js';
import type { BatchReason } from '../model/batch-reason.js';
import { errorClass } from '../model/error-class.js';
import type { Lsn } from '../model/lsn.js';
import type { Relation } from '../model/relation.js';
import type { Transaction } from '../model/transaction.js';
import { Durability, type DurabilitySubject } from './durability.js';
import { type CallSubject, isWithin, SinkCalls } from './sink-calls.js';

/** What a delivery asks of its connection and its pipeline. */
export interface DeliverySubject
  extends DurabilitySubject, Omit<CallSubject, 'batches' | 'work'> {
  /** `null` when each transaction is durable by itself. */
  readonly batchLimits: BatchLimits | null;
  delivered(transaction: Transaction, changes: number, ms: number): void;
  readonly blocked: DeliveryPorts['blocked'];
  /** Something became durable or was stored. */
  progressed(): void;
  failed(error: unknown): void;
}

/**
 * Hands the work of one connection to the sink, and keeps the positions that follow from it. Transactions become durable one by one, or
 * in batches: those of a sink are handed over together, those of the library are only stored together.
 */
export class PipelineDelivery {
  readonly #subject: DeliverySubject;
  readonly #serial: SerialDelivery;
  readonly #calls: SinkCalls;
  readonly #durability: Durability;
  /** Batches are handed over as such. */
  readonly #batches: boolean;
  /** The transaction that the sink works on, when it is read while it arrives. */
  #arrival: Arrival | null = null;
  #error: unknown = null;

  constructor(subject: DeliverySubject) {
    this.#subject = subject;
    this.#durability = new Durability(subject);
    this.#batches = subject.batchLimits !== null && !this.#durability.ofLibrary;
    this.#calls = new SinkCalls({ ...subject, batches: this.#batches });
    this.#serial = new SerialDelivery(
      {
        deliver: (work) => this.#deliver(work),
        copy: (work) => this.#copy(work),
        copied: () => subject.progressed(),
        gather: (work) => this.#gather(work),
        flush: (works, reason) => this.#flush(works, reason),
        batchLost: (error) =>
          subject.warning(
            `the checkpoint behind the transactions before it was not stored either (${errorClass(error)})`,
          ),
        store: () => this.store(),
        blocked: () => subject.blocked(),
        settled: (end, empty) => {
          subject.positions.settle(end, empty);
          subject.progressed();
        },
        failed: (error) => {
          this.#error = error;
          subject.shapes.failed();
          subject.failed(error);
        },
      },
      subject.batchLimits,
    );
  }

  /** Payload bytes of transactions that are not durable yet. */
  get bytes(): number {
    return this.#serial.bytes;
  }

  /** Those among them of transactions that are read while they arrive. */
  get arrivingBytes(): number {
    return this.#serial.arrivingBytes;
  }

  /** The sink works on a transaction whose end has not arrived. */
  get awaitsEnd(): boolean {
    return this.#arrival?.complete === false;
  }

  /** Why the last delivery failed; `null` when none did. */
  get error(): unknown {
    return this.#error;
  }

  push(work: Work): void {
    if (work.kind === 'transaction' || work.kind === 'pass')
      this.arrived(work.end);
    else if (work.kind === 'message') this.arrived(work.message.lsn);
    this.#serial.push(work);
  }

  /** The end of a transaction is here. */
  arrived(end: Lsn): void {
    this.#subject.positions.complete(end);
  }

  /** Nothing more arrives before something is durable. */
  held(): void {
    this.#serial.held();
  }

  /** Makes an open batch durable as soon as nothing runs. */
  closeBatch(reason: BatchReason): void {
    this.#serial.closeBatch(reason);
  }

  /** Stores positions that no transaction carries, as soon as nothing runs. */
  requestStore(): void {
    this.#serial.requestStore();
  }

  /**
   * Begins nothing any more; resolves when what runs has settled. What the sink was handed and is not stored yet is stored then. The first
   * call decides about a batch that was not handed over: whether it is, or comes again.
   */
  async settle(openBatch: 'deliver' | 'drop' = 'drop'): Promise<void> {
    this.#calls.end();
    const keep = openBatch === 'deliver' || this.#durability.ofLibrary;
    await this.#serial.stop(keep ? 'flush' : 'discard');
  }

  /** Stores what is durable and not stored yet. Only while nothing runs. */
  async store(): Promise<void> {
    if (await this.#durability.store()) this.#subject.progressed();
  }

  #deliver(work: SingleWork): Promise<Lsn> {
    switch (work.kind) {
      case 'transaction':
        return this.#deliverWhole(work);
      case 'arriving':
        return this.#deliverArriving(work);
      case 'message':
        return this.#deliverMessage(work);
    }
  }

  async #deliverWhole(work: TransactionWork): Promise<Lsn> {
    const { shapes, transaction, changes, end } = work;
    const began = performance.now();
    await this.#handOver(work);
    const ms = performance.now() - began;
    if (this.#durability.ofLibrary)
      await this.#durability.commit(shapes, transaction.commitLsn, end);
    else this.#note(shapes, transaction.commitLsn, end);
    this.#subject.delivered(transaction, changes, ms);
    return end;
  }

  /** Delivers a transaction of which the handler may have seen a part only, and waits for its end. */
  async #deliverArriving(work: ArrivingWork): Promise<Lsn> {
    const { transaction, arrival, shapes } = work;
    const { commitLsn } = transaction;
    if (arrival.fault !== null) throw arrival.fault;
    const began = performance.now();
    this.#arrival = arrival;
    this.#subject.shapes.begin(shapes);
    try {
      await this.#calls.arriving(work);
    } catch (error) {
      if (arrival.broken === null) throw error;
      await this.#durability.refuseAdvanced(transaction);
      // Whatever a handler makes of the loss: it was the connection that failed.
      throw arrival.broken;
    } finally {
      arrival.settle();
      this.#arrival = null;
    }
    if (arrival.broken !== null) {
      await this.#durability.refusePart(work);
      throw arrival.broken;
    }
    const end = await arrival.ended;
    const ms = performance.now() - began;
    if (this.#durability.ofLibrary)
      await this.#durability.commit(shapes, commitLsn, end);
    // Whether the sink advanced before or after the end had arrived cannot be told, so that is stored on its own.
    else this.#durability.note(shapes, commitLsn);
    this.#subject.delivered(transaction, arrival.count, ms);
    return end;
  }

  async #deliverMessage(work: MessageWork): Promise<Lsn> {
    const { lsn, content } = work.message;
    this.#subject.positions.handOver(lsn);
    await this.#calls.message(work);
    this.#subject.tell('message', { lsn, bytes: content.length });
    return lsn;
  }

  async #copy(work: ChunkWork): Promise<void> {
    const call = work.begin();
    const { progress } = call.context;
    await this.#calls.snapshot(call, async () =>
      this.#durability.hasProgress(progress),
    );
    await this.#durability.storeProgress(progress);
    work.taken();
  }

  /** A transaction joins the open batch. */
  async #gather(work: TransactionWork): Promise<void> {
    if (this.#batches) return this.#subject.work.wait(work.transaction);
    const began = performance.now();
    await this.#handOver(work);
    const ms = performance.now() - began;
    this.#subject.delivered(work.transaction, work.changes, ms);
  }

  async #flush(
    works: readonly TransactionWork[],
    reason: BatchReason,
  ): Promise<void> {
    const last = works.at(-1);
    if (last === undefined) return;
    const { commitLsn } = last.transaction;
    const began = performance.now();
    if (this.#batches) await this.#handOverBatch(works, last);
    else await this.#durability.commit(shapesOf(works), commitLsn, last.end);
    this.#subject.tell('batch', {
      transactions: works.length,
      commitLsn,
      reason,
      durationMilliseconds: performance.now() - began,
    });
  }

  /** Hands over a batch; one that the sink refuses transaction by transaction, so that a halt names the one at which it failed. */
  async #handOverBatch(
    works: readonly TransactionWork[],
    { end, transaction: { commitLsn } }: TransactionWork,
  ): Promise<void> {
    if (works.length === 1) return this.#handOverEach(works, null);
    const shapes = shapesOf(works);
    const began = performance.now();
    this.#subject.positions.handOver(end);
    this.#subject.shapes.begin(shapes);
    if (await this.#calls.batch(works)) {
      this.#note(shapes, commitLsn, end);
      const ms = performance.now() - began;
      for (const { transaction, changes } of works)
        this.#subject.delivered(transaction, changes, ms);
      return;
    }
    // None of them must store what those behind it bring.
    this.#subject.shapes.failed();
    await this.#handOverEach(works, await this.#durability.applied());
  }

  /** @param applied - up to which commit the sink has everything, whatever it answered */
  async #handOverEach(
    works: readonly TransactionWork[],
    applied: Lsn | null,
  ): Promise<void> {
    for (const work of works) {
      const { transaction, changes, shapes, end } = work;
      const { commitLsn } = transaction;
      const began = performance.now();
      if (!isWithin(commitLsn, applied)) await this.#handOver(work);
      this.#note(shapes, commitLsn, end);
      this.#subject.delivered(transaction, changes, performance.now() - began);
    }
  }

  #handOver(work: TransactionWork): Promise<void> {
    this.#subject.positions.handOver(work.end);
    if (!this.#durability.ofLibrary) this.#subject.shapes.begin(work.shapes);
    return this.#calls.transaction(work, () => this.#durability.applied());
  }

  /** The sink has made durable what ends here. */
  #note(shapes: readonly Relation[], commitLsn: Lsn, end: Lsn): void {
    if (this.#durability.note(shapes, commitLsn))
      this.#subject.positions.store(end);
  }
}

function shapesOf(works: readonly TransactionWork[]): Relation[] {
  return works.flatMap(({ shapes }) => shapes);
}
