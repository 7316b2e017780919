import type { RequiredTransactions } from './required-transactions.js';
import type { RowKey } from './row-identity.js';
import { sees, type VisibleTransactions } from './visibility.js';

/** What the stream brought of a row. */
export interface ChangedRow {
  /**
   * The last transaction that changed it. A snapshot that sees this one sees those before: whoever changes a row, or writes a key that was
   * in use, waits until the transaction before is visible.
   */
  readonly xid: number;
  /** Columns that none of them brought. Empty where the row began or ended: there is nothing to fill in then. */
  readonly unchanged: readonly string[];
}

/** What a row or a transaction counts beside its text. */
const ALLOWANCE_BYTES = 150;

/** Rows of one table that the stream has changed, in transactions that a chunk may not see. */
export class ChangedRows {
  readonly #rows = new Map<RowKey, ChangedRow>();
  /** Transactions with changes that cannot be told by row. */
  readonly #unnamed = new Set<number>();
  #truncatedBy: number | null = null;
  #keyBytes = 0;

  get bytes(): number {
    return (
      this.#keyBytes + (this.#rows.size + this.#unnamed.size) * ALLOWANCE_BYTES
    );
  }

  get any(): boolean {
    return this.#rows.size > 0;
  }

  get(key: RowKey): ChangedRow | undefined {
    return this.#rows.get(key);
  }

  /** An update that did not bring these columns, of a row that keeps its key. */
  updated(key: RowKey, xid: number, unchanged: readonly string[]): void {
    const before = this.#rows.get(key);
    this.#set(key, {
      xid,
      unchanged:
        before?.unchanged.filter((name) => unchanged.includes(name)) ??
        unchanged,
    });
  }

  /** A row with this key has begun or ended. */
  replaced(key: RowKey, xid: number): void {
    this.#set(key, { xid, unchanged: [] });
  }

  /** Rows were changed, and it is not known which. */
  unnamed(xid: number): void {
    this.#unnamed.add(xid);
  }

  truncated(xid: number): void {
    this.#truncatedBy = xid;
  }

  /** Every snapshot that is used sees what was changed of this row. */
  settled(key: RowKey): void {
    if (this.#rows.delete(key)) this.#keyBytes -= key.length;
  }

  /** Whether it is known of every row whether the stream has changed it behind this snapshot. */
  tellsAll(visible: VisibleTransactions): boolean {
    for (const xid of this.#unnamed) if (!sees(visible, xid)) return false;
    return true;
  }

  /** Whether the rows of this snapshot were truncated since. */
  isTruncated(visible: VisibleTransactions): boolean {
    return this.#truncatedBy !== null && !sees(visible, this.#truncatedBy);
  }

  /** Forgets what this snapshot sees, and every later one. */
  forget(visible: VisibleTransactions): void {
    const seen = new Map<number, boolean>();
    for (const [key, { xid }] of this.#rows) {
      let isSeen = seen.get(xid);
      if (isSeen === undefined) {
        isSeen = sees(visible, xid);
        seen.set(xid, isSeen);
      }
      if (isSeen) this.settled(key);
    }
    for (const xid of this.#unnamed)
      if (sees(visible, xid)) this.#unnamed.delete(xid);
    if (!this.isTruncated(visible)) this.#truncatedBy = null;
  }

  /** Forgets everything; chunks have to see it then. */
  giveUp(required: RequiredTransactions): void {
    for (const { xid } of this.#rows.values()) required.add(xid);
    for (const xid of this.#unnamed) required.add(xid);
    this.#rows.clear();
    this.#unnamed.clear();
    this.#keyBytes = 0;
  }

  #set(key: RowKey, row: ChangedRow): void {
    if (!this.#rows.has(key)) this.#keyBytes += key.length;
    this.#rows.set(key, row);
  }
}
