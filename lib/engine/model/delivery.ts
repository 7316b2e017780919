import type { Message } from './message.js';
import type { SnapshotContext, SnapshotRow } from './snapshot.js';
import type { Transaction } from './transaction.js';

/** What a sink is handed in one call. */
export type Delivery =
  | { readonly kind: 'transaction'; readonly transaction: Transaction }
  /** In ascending order of their commits; at least one. */
  | { readonly kind: 'batch'; readonly transactions: readonly Transaction[] }
  /** Outside any transaction. */
  | { readonly kind: 'message'; readonly message: Message }
  /** Rows that existed already, of one table. */
  | {
      readonly kind: 'snapshot';
      readonly rows: readonly SnapshotRow[];
      readonly context: SnapshotContext;
    };
