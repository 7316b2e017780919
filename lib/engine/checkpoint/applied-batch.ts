import type { StoredCheckpoint } from '../model/checkpoint.js';
import type { Transaction } from '../model/transaction.js';

/** What `CheckpointTable.advance()` needs of a transaction. */
export type AppliedTransaction = Pick<
  Transaction,
  'slotName' | 'commitLsn' | 'commitEndLsn'
>;

/**
 * The ends of a batch.
 *
 * @throws {Error} when it has none, or is not in the ascending order of commits in which batches are delivered
 */
export function endsOf<T extends AppliedTransaction>(
  transactions: readonly T[],
): { readonly first: T; readonly last: T } {
  const first = transactions[0];
  const last = transactions.at(-1);
  if (first === undefined || last === undefined) {
    throw new Error(
      'advance() was given an empty batch. Give it the transactions as they were delivered: there is always one.',
    );
  }
  let before: T | null = null;
  for (const transaction of transactions) {
    if (before !== null && transaction.commitLsn <= before.commitLsn) {
      throw new Error(
        'advance() was given a batch that is not in ascending order of commitLsn. Give it the transactions in the order in which they were delivered.',
      );
    }
    before = transaction;
  }
  return { first, last };
}

/** Whether a transaction is still to come. One at the stored boundary is, one at the stored commit position is not. */
export function isNew(
  { commitLsn }: AppliedTransaction,
  stored: StoredCheckpoint,
): boolean {
  return (
    (stored.commitLsn === null || commitLsn > stored.commitLsn) &&
    (stored.confirmedLsn === null || commitLsn >= stored.confirmedLsn)
  );
}
