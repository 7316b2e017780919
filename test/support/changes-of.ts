import type { Change } from '../../lib/engine/model/change.js';
import type { Transaction } from '../../lib/engine/model/transaction.js';

/** The changes of a transaction that was handed over whole; an error for one that was not. */
export function changesOf({ changes }: Transaction): readonly Change[] {
  if (Symbol.asyncIterator in changes) {
    throw new Error('The transaction was not handed over whole.');
  }
  return changes;
}
