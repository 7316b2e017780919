import type { SinkCheckpoint } from '../model/checkpoint.js';
import type { Transaction } from '../model/transaction.js';

/** What a pipeline delivers to. */
export interface Sink {
  /** Class name, for messages. */
  readonly name: string;
  readonly checkpoint: SinkCheckpoint;
  /**
   * Applies one transaction. A promise that resolves says that its work is durable. The result is typed `unknown`
   * because a handler written in JavaScript may return anything; only a promise is accepted.
   */
  transaction(transaction: Transaction): unknown;
}
