import { deliverTransaction } from './deliver/deliver-transaction.js';
import {
  SerialDelivery,
  type TransactionWork,
  type Work,
} from './deliver/serial-delivery.js';
import type { Sink } from './deliver/sink.js';
import type { Transaction } from './model/transaction.js';
import type { AroundDelivery } from './options/pipeline-options.js';
import { available } from './server/checkpoint-reading.js';
import type { Positions } from './source/positions.js';

/** What a delivery asks of its connection and its pipeline. */
export interface DeliverySubject {
  readonly sink: Sink;
  readonly around: AroundDelivery | null;
  readonly positions: Positions;
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
  #error: unknown = null;

  constructor(subject: DeliverySubject) {
    const { positions } = subject;
    this.#subject = subject;
    this.#serial = new SerialDelivery({
      deliver: (work) => this.#deliver(work),
      store: () => this.store(),
      started: (work) => positions.handOver(work.end),
      settled: (work) => {
        positions.settle(work.end);
        subject.progressed();
      },
      failed: (error) => {
        this.#error = error;
        subject.failed(error);
      },
    });
  }

  /** Payload bytes of transactions that are not durable yet. */
  get bytes(): number {
    return this.#serial.bytes;
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
    this.#subject.positions.complete(work.end);
    this.#serial.push(work);
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
    await available(sink.checkpoint.keeper.confirm(position));
    positions.store(position);
    this.#subject.progressed();
  }

  async #deliver({ transaction, changes }: TransactionWork): Promise<void> {
    const { around, sink } = this.#subject;
    const began = performance.now();
    this.#current = transaction;
    try {
      await this.#subject.insideDelivery(() =>
        deliverTransaction(sink, transaction, around, (errorClass) =>
          this.#subject.warning(
            `the option around threw ${errorClass} after the transaction was applied`,
          ),
        ),
      );
    } finally {
      this.#current = null;
    }
    this.#noteStored(transaction);
    this.#subject.delivered(transaction, changes, performance.now() - began);
  }

  /** A keeper that advanced to the transaction has stored its end with it. */
  #noteStored({ commitLsn, commitEndLsn }: Transaction): void {
    const { positions, sink } = this.#subject;
    if (sink.checkpoint.kind !== 'keeper' || commitEndLsn === null) return;
    const { advancedTo } = sink.checkpoint.keeper;
    if (advancedTo !== null && advancedTo >= commitLsn) {
      positions.store(commitEndLsn);
    }
  }
}
