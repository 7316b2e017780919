import type { Row, Tables } from './change.js';
import type { Lsn } from './lsn.js';
import type { Column } from './relation.js';

/** How the rows that exist already are copied. */
export type SnapshotMode = 'initial' | 'incremental';

interface RowOfTable<K extends string, R> {
  readonly op: 'snapshot';
  /** `schema.table`; tells the members of {@link SnapshotRow} apart. */
  readonly relation: K;
  readonly schema: string;
  readonly table: string;
  /**
   * The row without the columns named in {@link RowOfTable.unchanged}. A sink writes it by the replica identity of its table: what is there
   * already is replaced, column by column.
   */
  readonly record: Partial<R>;
  /**
   * Mostly empty. Else columns that a sink must leave alone: the stream has brought the row, without large columns that were not sent, and
   * `record` has these and the replica identity.
   */
  readonly unchanged: readonly (keyof R & string)[];
  /** Published columns, as changes of the stream have them. */
  readonly columns: readonly Column[];
}

/** A row that existed when it was read. */
export type SnapshotRow<T = Tables> = {
  [K in keyof T & string]: RowOfTable<K, T[K]>;
}[keyof T & string];

/** A row of whatever table. */
export type AnySnapshotRow = RowOfTable<string, Row>;

/** Says what rows of a snapshot are. */
export interface SnapshotContext {
  readonly pipeline: string;
  readonly slotName: string;
  readonly mode: SnapshotMode;
  /**
   * `schema.table`, the same text as `relation` of the rows and of changes: all rows of one call are of one table. Compare it as a whole; either
   * name may hold a dot. `''` for a call of the mode `incremental` that is for no table: with
   * {@link SnapshotContext.complete}, or with {@link SnapshotContext.progress} alone.
   */
  readonly relation: string;
  /** Where the slot begins: the stream brings what commits from here on. */
  readonly snapshotLsn: Lsn;
  /**
   * The first call for this table: rows that the sink has of it are left from before, and have to go. It may bring no rows. It comes once a
   * table, also for an empty one, and again when the copy of the table begins anew.
   */
  readonly firstForTable: boolean;
  /** Everything is copied; it comes without rows, in the mode `incremental`, and again at the end of each `pipeline.snapshot()`. */
  readonly complete: boolean;
  /**
   * What to store with the rows, in the same database transaction, so that a later start goes on behind them; `null` in the mode `initial`.
   * Opaque, and not fit for logs: it holds key values.
   */
  readonly progress: string | null;
}

/** Where the stream begins behind an initial snapshot. */
export interface SnapshotCheckpoint {
  readonly pipeline: string;
  readonly slotName: string;
  /** The watermark: everything that commits up to here is in the snapshot. */
  readonly commitLsn: Lsn;
  /** Where the slot begins, a boundary. */
  readonly commitEndLsn: Lsn;
}
