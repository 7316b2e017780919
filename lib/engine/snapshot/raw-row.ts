/** The values of one row as the server's text, in the order of {@link PublishedTable.columns}; `null` for NULL. */
export type RawRow = readonly (string | null)[];

/** Rows in their order. Where they are kept in another form, each is made when it is asked for. */
export interface RawRows extends Iterable<RawRow> {
  readonly length: number;
  /** Counts from the end when `place` is negative, as in an array. */
  at(place: number): RawRow | undefined;
}

/** Rows that are handed over together. */
export interface Page {
  readonly rows: RawRows;
  /** Of their text. */
  readonly bytes: number;
}

/** A page or a chunk ends with the row by which it reaches this. */
export const PAGE_BYTES = 4 * 1024 * 1024;
/** A page ends with this row. */
export const PAGE_ROWS = 1_000;
