/**
 * Which transactions a snapshot of the source sees, as `pg_current_snapshot()` tells.
 *
 * @see {@link https://www.postgresql.org/docs/current/functions-info.html#FUNCTIONS-PG-SNAPSHOT | Transaction ID and snapshot information functions}
 */
export interface VisibleTransactions {
  /** The lowest transaction id that was in progress: everything below is visible, or was rolled back. 64 bits wide. */
  readonly xmin: bigint;
  /** The first that had not been given out: nothing from here on is visible. */
  readonly xmax: bigint;
  /** Those in progress between the two. Empty on a server in recovery, which does not tell them. */
  readonly inProgress: ReadonlySet<bigint>;
  /** Everything from `xmin` on counts as not visible then. */
  readonly inRecovery: boolean;
}
