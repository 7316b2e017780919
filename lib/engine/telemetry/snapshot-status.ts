import type { SnapshotMode } from '../model/snapshot.js';

/** How far a snapshot is, ready for JSON. */
export interface SnapshotStatus {
  readonly mode: SnapshotMode;
  /** `interrupted`: it goes on, or begins anew, with the next connection. */
  readonly state: 'copying' | 'interrupted' | 'complete';
  /** Those too that an earlier process has copied. */
  readonly tablesDone: number;
  readonly tablesTotal: number;
  /** Names of the tables that are being copied, as changes have them. */
  readonly tables: readonly string[];
  /** Rows that the sink has taken since this process began to copy; those of a table that is copied again count anew. */
  readonly rows: number;
  /**
   * How many these are in the end, by the statistics of the source and corrected by what was copied; `null` while a table has none. Tables
   * that an earlier process has copied are not in it; one of which it has copied a part is, as a whole.
   */
  readonly estimatedRows: number | null;
  /** Over the last ten seconds; when it is complete, over all of it. */
  readonly rowsPerSecond: number;
  /**
   * By that rate; `null` while it is not known. Too long while a table is finished of which an earlier process has copied a part: nobody knows
   * how many rows that had.
   */
  readonly secondsRemaining: number | null;
  /** When this process began to copy, ISO 8601. */
  readonly startedAt: string;
}

/** Published tables whose rows were never copied, ready for JSON: the sink has of them what was written since the slot began, and no more. */
export interface NeverCopied {
  readonly count: number;
  /** Their names as changes have them, in order, of the first fifty. */
  readonly tables: readonly string[];
}
