import type { BatchReason } from '../model/batch-reason.js';
import { bytesHeld, type PassWork, type TransactionWork } from './work.js';

/** When a batch is full. */
export interface BatchLimits {
  readonly maxTransactions: number;
  /** Payload bytes, with the allowance for each transaction. */
  readonly maxBytes: number;
  /** Milliseconds since its first transaction. */
  readonly maxDelayMs: number;
}

/** Transactions that become durable together, and what has its place between them. */
export class OpenBatch {
  #works: (TransactionWork | PassWork)[] = [];
  #transactions: TransactionWork[] = [];
  #bytes = 0;

  constructor(private readonly limits: BatchLimits) {}

  get empty(): boolean {
    return this.#transactions.length === 0;
  }

  /** Why nothing more belongs in it; `null` while it is not full. */
  get full(): BatchReason | null {
    const { maxTransactions, maxBytes } = this.limits;
    if (this.#transactions.length >= maxTransactions) return 'count';
    return this.#bytes >= maxBytes ? 'bytes' : null;
  }

  add(work: TransactionWork): void {
    this.#works.push(work);
    this.#transactions.push(work);
    this.#bytes += bytesHeld(work);
  }

  /** What needs nothing of the sink waits with the rest: it must not be durable before what comes before it. */
  fold(work: PassWork): void {
    this.#works.push(work);
    this.#bytes += bytesHeld(work);
  }

  /** Takes out what it holds; it is empty then. */
  take(): {
    readonly works: readonly (TransactionWork | PassWork)[];
    readonly transactions: readonly TransactionWork[];
  } {
    const taken = { works: this.#works, transactions: this.#transactions };
    this.#works = [];
    this.#transactions = [];
    this.#bytes = 0;
    return taken;
  }
}
