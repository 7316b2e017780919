import type { SnapshotMode } from '../model/snapshot.js';

/** A table that is copied. */
export interface MeteredTable {
  /** `schema.table`. */
  readonly name: string;
  readonly estimatedRows: number | null;
}

/** Is told how a snapshot gets on. Calls for tables that are copied at a time may be interleaved. */
export interface SnapshotMeter {
  /**
   * A copy begins, or goes on after an interruption.
   *
   * @param done - those among the tables that were copied before
   * @param resumed - it goes on; not so where only tables are added to others that were copied
   */
  begin(
    mode: SnapshotMode,
    tables: readonly MeteredTable[],
    done: readonly string[],
    resumed?: boolean,
  ): void;
  /** The sink has taken rows of this table. */
  rows(table: string, count: number): void;
  /** A table is copied. */
  tableDone(table: string): void;
  /** The copy of a table begins anew, because it was written to. */
  tableAgain(table: string): void;
  /** Everything is copied. */
  complete(): void;
  /** The copy has ended before it was complete. */
  interrupted(): void;
}
