import { sees, type VisibleTransactions, widenXid } from './visibility.js';

/** From here on only the last is kept, and all before it are required too. */
const MOST_KEPT = 1_000;

/** Transactions that a chunk has to see: what the stream brought in them was not kept. */
export class RequiredTransactions {
  readonly #xids = new Set<number>();
  /** Every transaction up to this one is required. */
  #upTo: number | null = null;

  has(xid: number): boolean {
    return this.#xids.has(xid);
  }

  add(xid: number): void {
    this.#xids.add(xid);
    if (this.#xids.size <= MOST_KEPT) return;
    for (const each of this.#xids)
      if (this.#upTo === null || isBehind(each, this.#upTo)) this.#upTo = each;
    this.#xids.clear();
  }

  seenBy(visible: VisibleTransactions): boolean {
    for (const xid of this.#xids) if (!sees(visible, xid)) return false;
    return this.#upTo === null || seesUpTo(visible, this.#upTo);
  }

  /** Forgets those that every later snapshot sees, since this one does. */
  forget(visible: VisibleTransactions): void {
    for (const xid of this.#xids)
      if (sees(visible, xid)) this.#xids.delete(xid);
    if (this.#upTo !== null && seesUpTo(visible, this.#upTo)) this.#upTo = null;
  }
}

function isBehind(xid: number, other: number): boolean {
  return ((xid - other) | 0) > 0;
}

function seesUpTo(visible: VisibleTransactions, xid: number): boolean {
  return widenXid(xid, visible.xmax) < visible.xmin;
}
