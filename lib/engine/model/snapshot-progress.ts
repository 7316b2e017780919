import type { Lsn } from './lsn.js';
import type { TableName } from './relation.js';

/** How far an incremental snapshot is. Names in it are never written into SQL: they are compared with those of the catalog. */
export interface SnapshotProgress {
  /** Where the slot began when the snapshot did. */
  readonly floor: Lsn;
  readonly complete: boolean;
  /**
   * Commit position of a transaction that was handed over before it was known which rows it left without some of their columns; `null` when
   * there was none since a later progress.
   */
  readonly uncertain: Lsn | null;
  /** Every table that is copied, each once. */
  readonly tables: readonly TableProgress[];
}

/** A table of a snapshot, and how far its copy is. */
export type TableProgress = ProgressTable & TableState;

/** A table, and its OID: another table may have the name later. */
export interface ProgressTable extends TableName {
  readonly oid: number;
}

/**
 * - `uncleared`: the sink was not told yet to remove what it has of it
 * - `waiting`: it was, and nothing was copied since
 * - `copying`: a part of a table without an order key was copied
 * - `reading`: it was copied up to a row
 * - `done`: nothing is left to copy
 */
export type TableState =
  | { readonly state: 'uncleared' | 'waiting' | 'done' }
  | CopyingState
  | ReadingState;

export interface CopyingState {
  readonly state: 'copying';
  /** Pages that were handed over: otherwise the progress of one would be that of the next, and not tell which of them the sink has. */
  readonly pages: number;
}

export interface ReadingState {
  readonly state: 'reading';
  /** The row that was read last; `null` when only rows are left that lack columns. */
  readonly bound: Bound | null;
  /** Rows of the sink that lack columns and that reading in order does not come to; `null` when there are none. */
  readonly lacking: LackingRows | null;
}

/** A row in the order in which a table is read. */
export interface Bound {
  /** By which columns; two texts for each: its name, and how its type is ordered. */
  readonly order: readonly (readonly [name: string, ordering: string])[];
  /** Their values in the row, as the server's text. */
  readonly values: readonly string[];
}

/** The values of some columns of several rows, as the server's text. */
export interface LackingRows {
  readonly columns: readonly string[];
  readonly keys: readonly (readonly string[])[];
}

/** That everything is to be copied, and it is not known yet what that is. */
export function pendingProgress(floor: Lsn): SnapshotProgress {
  return { floor, complete: false, uncertain: null, tables: [] };
}

/** Whether it says no more than {@link pendingProgress}. */
export function isPending({ complete, tables }: SnapshotProgress): boolean {
  return !complete && tables.length === 0;
}

/** That these tables are copied, and nothing is left. */
export function completeProgress(
  floor: Lsn,
  tables: readonly ProgressTable[],
): SnapshotProgress {
  return {
    floor,
    complete: true,
    uncertain: null,
    tables: tables.map(({ schema, table, oid }) => ({
      schema,
      table,
      oid,
      state: 'done',
    })),
  };
}

/** Whether the sink was told anything of the snapshot. */
export function isBegun({ complete, tables }: SnapshotProgress): boolean {
  return complete || tables.some(({ state }) => state !== 'uncleared');
}

/** Tells tables apart. No name holds a NUL. */
export function tableKey({ schema, table }: TableName): string {
  return `${schema}\0${table}`;
}
