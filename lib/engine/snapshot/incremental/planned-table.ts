import type {
  KeyColumn,
  PublishedTable,
} from '../../server/published-table.js';
import type { RawRow, RawRows } from '../raw-row.js';
import type {
  LackingRows,
  TableProgress,
  TableState,
} from '../../model/snapshot-progress.js';

/** What a chunk is of the copy of its table. */
export type Part =
  /** Rows behind the last that was read; `last` when none follow. */
  | { readonly kind: 'rows'; readonly last: boolean }
  /** Rows that were searched because they lack columns. */
  | { readonly kind: 'keys' }
  /** A page of a table that is read whole. */
  | { readonly kind: 'page'; readonly first: boolean; readonly last: boolean };

/** Where reading of a table is. */
export type ReadingMark = Pick<
  PlannedTable,
  'readBehind' | 'readToEnd' | 'readsKeys'
>;

/** A table that is copied: what the sink was given of it, and what is read. */
export class PlannedTable {
  /** What the sink has when it has taken everything that was handed over. */
  state: TableState;
  /** What it was when {@link PlannedTable.takeChange} was called last. */
  #known: TableState;
  /** Values of the order key behind which reading goes on; `null` at the beginning. */
  readBehind: readonly string[] | null = null;
  /** Nothing is left to read in order, or of the whole. */
  readToEnd = false;
  /** Rows that lack columns are being read. */
  readsKeys = false;
  /** Pages of the whole table that were handed over, also in vain. */
  #pages = 0;
  /** Times that the whole table was read in vain. */
  inVain = 0;
  /** Chunks are used that see every transaction below this one; `null` when any is, `unknown` when it was not asked yet. */
  notBefore: bigint | null | 'unknown' = null;
  /** Rows that lacked columns when such rows were read last. */
  lackedBefore = Infinity;
  /** The stream has brought something of it since the sink was told to remove what it has. */
  touched: boolean;

  /** @param touched - whether the stream may have brought something of it before */
  constructor(
    readonly table: PublishedTable,
    state: TableState,
    touched: boolean,
  ) {
    this.state = state;
    this.#known = state;
    this.touched = touched;
    this.rewind();
  }

  get progress(): TableProgress {
    const { schema, table, oid } = this.table;
    return { schema, table, oid, ...this.state };
  }

  /** Its progress, when that is another since this was called last. */
  takeChange(): TableProgress | null {
    if (this.state === this.#known) return null;
    this.#known = this.state;
    return this.progress;
  }

  get isDone(): boolean {
    return this.state.state === 'done';
  }

  /** A part of it was handed over in order. */
  get isReading(): boolean {
    return this.state.state === 'reading';
  }

  /** Everything was handed over but rows that lack columns. */
  get onlyLacks(): boolean {
    return this.state.state === 'reading' && this.state.bound === null;
  }

  /** What was read is on its way. */
  read(part: Part, rows: RawRows): void {
    if (part.kind === 'keys') {
      this.readsKeys = true;
      return;
    }
    this.readToEnd = part.last;
    const row = rows.at(-1);
    if (part.kind === 'rows' && row !== undefined)
      this.readBehind = this.#valuesOf(row);
  }

  get mark(): ReadingMark {
    const { readBehind, readToEnd, readsKeys } = this;
    return { readBehind, readToEnd, readsKeys };
  }

  /** What was read since cannot be used. */
  backTo({ readBehind, readToEnd, readsKeys }: ReadingMark): void {
    this.readBehind = readBehind;
    this.readToEnd = readToEnd;
    this.readsKeys = readsKeys;
  }

  /** What was read and not handed over is read again. */
  rewind(): void {
    const { state } = this;
    this.readsKeys = false;
    this.readToEnd = this.isDone || this.onlyLacks;
    this.readBehind =
      state.state === 'reading' ? (state.bound?.values ?? null) : null;
  }

  /** Rows are handed over. */
  handOver(part: Part, rows: RawRows, lacking: LackingRows | null): void {
    if (part.kind === 'page') {
      this.#pages += 1;
      this.state = part.last
        ? { state: 'done' }
        : { state: 'copying', pages: this.#pages };
      return;
    }
    if (part.kind === 'keys') this.readsKeys = false;
    const atEnd = part.kind === 'rows' ? part.last : this.onlyLacks;
    if (atEnd) {
      this.state =
        lacking === null
          ? { state: 'done' }
          : { state: 'reading', bound: null, lacking };
    } else if (part.kind === 'rows') {
      const row = rows.at(-1);
      if (row !== undefined)
        this.state = {
          state: 'reading',
          bound: { order: orderOf(this.table), values: this.#valuesOf(row) },
          lacking,
        };
    } else this.lacks(lacking);
  }

  /** Rows of it lack columns, in what was handed over. When none is left, it takes one more chunk that finds none until it is done. */
  lacks(lacking: LackingRows | null): void {
    if (this.state.state !== 'reading') return;
    if (this.onlyLacks && lacking === null) return;
    this.state = { ...this.state, lacking };
  }

  /** It is read from its beginning; the sink keeps what it has. */
  beginAgain(): void {
    this.state = { state: 'waiting' };
    this.rewind();
  }

  #valuesOf(row: RawRow): readonly string[] {
    const { columns, orderKey } = this.table;
    return (orderKey ?? []).map(
      ({ name }) =>
        row[columns.findIndex((column) => column.name === name)] ?? '',
    );
  }
}

/** By which columns a table is read in order, as its progress has it. */
export function orderOf(
  table: PublishedTable,
): readonly (readonly [string, string])[] {
  return (table.orderKey ?? []).map((column) => [
    column.name,
    orderingOf(column),
  ]);
}

function orderingOf({ quotedType, quotedCollation }: KeyColumn): string {
  return quotedCollation === null
    ? quotedType
    : `${quotedType} COLLATE ${quotedCollation}`;
}
