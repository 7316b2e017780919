import type { Lsn } from '../model/lsn.js';

/** One thing of the stream that is passed over although it was not applied, because somebody ordered it. */
export interface PassOrder {
  /** What it is. A message may end exactly where the commit of a transaction begins, so the position alone does not tell. */
  readonly of: 'transaction' | 'message';
  /** Commit position of the transaction, or position of the message outside transactions. */
  readonly lsn: Lsn;
}

/** Whether the order means this one, and neither one before nor one behind it. */
export function isOrdered(
  order: PassOrder | null,
  of: PassOrder['of'],
  lsn: Lsn,
): boolean {
  return order !== null && order.of === of && order.lsn === lsn;
}
