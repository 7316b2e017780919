import type { SnapshotMode } from '../model/snapshot.js';

/** How far a snapshot is, ready for JSON. */
export interface SnapshotStatus {
  readonly mode: SnapshotMode;
  /** `interrupted`: it goes on, or begins anew, with the next connection. */
  readonly state: 'copying' | 'interrupted' | 'complete';
  readonly tablesDone: number;
  readonly tablesTotal: number;
  /** Names of the tables that are being copied, as changes have them. */
  readonly tables: readonly string[];
  /** Rows that the sink has taken since this process began to copy. */
  readonly rows: number;
  /** All of them by the statistics of the source, corrected by what was copied; `null` while a table has none. */
  readonly estimatedRows: number | null;
  readonly rowsPerSecond: number;
  /** By that rate; `null` while it is not known. */
  readonly secondsRemaining: number | null;
  /** ISO 8601. */
  readonly startedAt: string;
}
