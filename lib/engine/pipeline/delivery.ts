import { callSink } from '../deliver/call-sink.js';
import {
  type Arrival,
  type ArrivingWork,
  SerialDelivery,
  type TransactionWork,
  type Work,
} from '../deliver/serial-delivery.js';
import type { Sink } from '../deliver/sink.js';
import { errorClass } from '../model/error-class.js';
import { HaltError } from '../model/halt.js';
import type { Lsn } from '../model/lsn.js';
import type { Transaction } from '../model/transaction.js';
import type { AroundDelivery } from '../options/pipeline-options.js';
import type { ShapeStorage } from './shapes.js';
import { available } from '../server/checkpoint-reading.js';
import type { SinkWork } from './work.js';
import type { Positions } from '../source/positions.js';

/** What a delivery asks of its connection and its pipeline. */
export interface DeliverySubject {
  readonly sink: Sink;
  readonly around: AroundDelivery | null;
  readonly positions: Positions;
  readonly shapes: ShapeStorage;
  /** Is told what the sink works on. */
  readonly work: SinkWork;
  /** Runs a handler so that what it calls can tell that it is inside one. */
  insideDelivery(work: () => Promise<void>): Promise<void>;
  delivered(transaction: Transaction, changes: number, ms: number): void;
  /** Something became durable or was stored. */
  progressed(): void;
  warning(message: string): void;
  failed(error: unknown): void;
}

/** Hands the work of one connection to the sink, and keeps the positions that follow from it. */
export class PipelineDelivery {
  readonly #subject: DeliverySubject;
  readonly #serial: SerialDelivery;
  #current: Transaction | null = null;
  /** The transaction that the sink works on, when it is read while it arrives. */
  #arrival: Arrival | null = null;
  #error: unknown = null;

  constructor(subject: DeliverySubject) {
    const { positions } = subject;
    this.#subject = subject;
    this.#serial = new SerialDelivery({
      deliver: (work) =>
        work.kind === 'transaction'
          ? this.#deliverWhole(work)
          : this.#deliverArriving(work),
      store: () => this.store(),
      settled: (end, empty) => {
        positions.settle(end, empty);
        subject.progressed();
      },
      failed: (error) => {
        this.#error = error;
        subject.shapes.failed();
        subject.failed(error);
      },
    });
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

  /** The transaction that the sink works on. */
  get current(): Transaction | null {
    return this.#current;
  }

  /** Why the last delivery failed; `null` when none did. */
  get error(): unknown {
    return this.#error;
  }

  push(work: Work): void {
    if (work.kind === 'transaction' || work.kind === 'pass')
      this.arrived(work.end);
    this.#serial.push(work);
  }

  /** The end of a transaction is here. */
  arrived(end: Lsn): void {
    this.#subject.positions.complete(end);
  }

  /** Stores positions that no transaction carries, as soon as nothing runs. */
  requestStore(): void {
    this.#serial.requestStore();
  }

  /** Begins nothing any more; resolves when what runs has settled. */
  async settle(): Promise<void> {
    await this.#serial.stop();
  }

  /** Stores what is durable and not stored yet. Only while nothing runs. */
  async store(): Promise<void> {
    const { positions, sink } = this.#subject;
    const position = positions.storable;
    if (sink.checkpoint.kind !== 'keeper' || position === null) return;
    this.#subject.work.begin(performance.now());
    try {
      await available(sink.checkpoint.keeper.confirm(position));
    } finally {
      this.#subject.work.end();
    }
    this.#subject.shapes.stored();
    positions.store(position);
    this.#subject.progressed();
  }

  async #deliverWhole(work: TransactionWork): Promise<Lsn> {
    const { transaction, changes, end } = work;
    const began = performance.now();
    this.#subject.positions.handOver(end);
    try {
      await this.#handle(work, null, began);
    } finally {
      this.#ended();
    }
    if (this.#noteDurable(work)) this.#subject.positions.store(end);
    this.#subject.delivered(transaction, changes, performance.now() - began);
    return end;
  }

  /** Delivers a transaction of which the handler may have seen a part only, and waits for its end. */
  async #deliverArriving(work: ArrivingWork): Promise<Lsn> {
    const { transaction, arrival } = work;
    if (arrival.fault !== null) throw arrival.fault;
    const began = performance.now();
    this.#arrival = arrival;
    try {
      await this.#handle(work, arrival, began);
    } catch (error) {
      if (arrival.broken === null) throw error;
      await this.#refuseAdvanced(transaction);
      // Whatever a handler makes of the loss: it was the connection that failed.
      throw arrival.broken;
    } finally {
      arrival.settle();
      this.#arrival = null;
      this.#ended();
    }
    if (arrival.broken !== null) await this.#refusePart(work);
    // Whether the sink advanced before or after the end had arrived cannot be told, so that is stored on its own.
    const end = await arrival.ended;
    this.#noteDurable(work);
    const ms = performance.now() - began;
    this.#subject.delivered(transaction, arrival.count, ms);
    return end;
  }

  #ended(): void {
    this.#current = null;
    this.#subject.work.end();
  }

  #handle(
    { transaction, shapes }: TransactionWork | ArrivingWork,
    arrival: Arrival | null,
    began: number,
  ): Promise<void> {
    const { around, sink } = this.#subject;
    this.#current = transaction;
    this.#subject.work.begin(began, transaction, arrival);
    this.#subject.shapes.begin(shapes);
    return this.#subject.insideDelivery(() =>
      callSink(
        {
          delivery: { kind: 'transaction', transaction },
          what: `a handler of ${sink.name}`,
          lsn: transaction.commitLsn,
          call: () => sink.transaction?.(transaction),
        },
        around,
        (name) =>
          this.#subject.warning(
            `the option around threw ${name} after the transaction was applied`,
          ),
      ),
    );
  }

  /** A handler that rejects has rolled back, unless its checkpoint was not in the transaction of its rows. */
  async #refuseAdvanced({ commitLsn }: Transaction): Promise<void> {
    const { checkpoint, name } = this.#subject.sink;
    if (checkpoint.kind !== 'keeper') return;
    // What cannot be read now is read at the next connect.
    const stored = await checkpoint.keeper.load().catch(() => null);
    if (stored?.commitLsn !== commitLsn) return;
    throw new HaltError('sink_failed/partial_transaction', {
      detail: `the checkpoint of ${name} stands at a transaction of which the connection brought a part only; it was not set back, and has to be before the next start: advance it in the database transaction that writes the rows`,
      lsn: commitLsn,
    });
  }

  /** A handler that resolves although the rest was lost has committed a part, which nothing would ever complete. */
  async #refusePart({ transaction, shapes }: ArrivingWork): Promise<never> {
    const { commitLsn } = transaction;
    const { checkpoint } = this.#subject.sink;
    if (checkpoint.kind === 'keeper') {
      this.#subject.shapes.partLeft(shapes);
      // Otherwise the next start would take the part for the whole.
      await checkpoint.keeper.retract(commitLsn).catch((error: unknown) => {
        this.#subject.warning(
          `the checkpoint of a transaction that was applied in part was not set back (${errorClass(error)})`,
        );
      });
    }
    throw new HaltError('sink_failed/partial_transaction', {
      detail: `a handler of ${this.#subject.sink.name} resolved although the connection was lost before it had read the transaction to its end`,
      lsn: commitLsn,
    });
  }

  /** @returns whether the keeper advanced to the transaction: it has stored its end then, as far as that had arrived */
  #noteDurable(work: TransactionWork | ArrivingWork): boolean {
    const { shapes, sink } = this.#subject;
    const { commitLsn } = work.transaction;
    const advancedTo =
      sink.checkpoint.kind === 'keeper'
        ? sink.checkpoint.keeper.advancedTo
        : null;
    const stored = advancedTo !== null && advancedTo >= commitLsn;
    shapes.durable(work.shapes, commitLsn, stored);
    return stored;
  }
}
