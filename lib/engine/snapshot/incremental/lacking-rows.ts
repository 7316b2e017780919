import { type RowKey, valuesOf } from './row-identity.js';
import type { RawRow } from '../raw-row.js';
import type { RequiredTransactions } from './required-transactions.js';

/** A row that the sink may lack columns of, and that reading in order may not come to any more. */
export interface LackingRow {
  /** Of the columns of the replica identity, in the order of the table. */
  readonly identity: RawRow;
  /** Names of the columns; `null` when it is not known which they are. */
  readonly columns: readonly string[] | null;
}

/** What a row lacks. */
export interface Lack {
  /** The transaction that made the row; `null` for one that every chunk sees that is used. */
  readonly xid: number | null;
  readonly columns: readonly string[] | null;
}

/** What a row counts beside its texts. */
const ALLOWANCE_BYTES = 150;

/**
 * Rows whose key the stream changed without bringing all of their columns. The sink may not have had the row under its old key, and the new
 * key may lie before what is read next: such rows are read by their keys.
 */
export class LackingRows {
  readonly #rows = new Map<RowKey, Lack>();
  readonly #maxBytes: number;
  readonly #required: RequiredTransactions;
  #bytes = 0;
  #tooMany = false;
  #added = false;

  /** @param required - is told the transactions whose rows are not kept */
  constructor(
    maxBytes: number,
    required: RequiredTransactions,
    restored: readonly RowKey[] = [],
  ) {
    this.#maxBytes = maxBytes;
    this.#required = required;
    for (const key of restored) this.#set(key, { xid: null, columns: null });
  }

  /** They were not kept: the table has to be read again from its beginning. */
  get tooMany(): boolean {
    return this.#tooMany;
  }

  get rows(): LackingRow[] {
    return Array.from(this.#rows, ([key, { columns }]) => ({
      identity: valuesOf(key),
      columns,
    }));
  }

  get any(): boolean {
    return this.#rows.size > 0;
  }

  get(key: RowKey): Lack | undefined {
    return this.#rows.get(key);
  }

  /** Whether rows were added since this was asked last. */
  takeAdded(): boolean {
    const added = this.#added;
    this.#added = false;
    return added;
  }

  /** The row has this key now, and came without these columns. */
  moved(key: RowKey, xid: number, columns: readonly string[]): void {
    this.gone(key);
    if (columns.length === 0) return;
    if (!this.#tooMany) this.#set(key, { xid, columns });
    this.#added = true;
    if (this.#tooMany || this.#bytes > this.#maxBytes) this.giveUp(xid);
  }

  /** The row came again, without these columns. */
  updated(key: RowKey, unchanged: readonly string[]): void {
    const lack = this.#rows.get(key);
    if (lack === undefined) return;
    const columns =
      lack.columns?.filter((name) => unchanged.includes(name)) ?? unchanged;
    if (columns.length === 0) this.gone(key);
    else if (columns.length !== lack.columns?.length)
      this.#rows.set(key, { xid: lack.xid, columns });
  }

  /** The row is there no more, or is whole. */
  gone(key: RowKey): void {
    if (this.#rows.delete(key)) this.#bytes -= bytesOf(key);
  }

  /** Every row is gone. */
  clear(): void {
    this.#rows.clear();
    this.#bytes = 0;
  }

  /** Rows that this transaction changed are not kept, and none before. */
  giveUp(xid: number): void {
    this.#required.add(xid);
    for (const lack of this.#rows.values())
      if (lack.xid !== null) this.#required.add(lack.xid);
    this.clear();
    this.#tooMany = true;
    this.#added = true;
  }

  /** The table is read from its beginning, by chunks that see everything so far. */
  readAgain(): void {
    this.clear();
    this.#tooMany = false;
  }

  #set(key: RowKey, lack: Lack): void {
    if (!this.#rows.has(key)) this.#bytes += bytesOf(key);
    this.#rows.set(key, lack);
  }
}

function bytesOf(key: RowKey): number {
  return key.length + ALLOWANCE_BYTES;
}
