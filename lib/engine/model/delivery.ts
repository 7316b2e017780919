import type { Message } from './message.js';
import type { Transaction } from './transaction.js';

/** What a sink is handed in one call. */
export type Delivery =
  | { readonly kind: 'transaction'; readonly transaction: Transaction }
  /** In ascending order of their commits; at least one. */
  | { readonly kind: 'batch'; readonly transactions: readonly Transaction[] }
  /** Outside any transaction. */
  | { readonly kind: 'message'; readonly message: Message };
