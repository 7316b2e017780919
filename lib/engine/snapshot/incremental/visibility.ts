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

/** Whether a snapshot sees what a transaction did, by its top-level id as the stream has it: the lower half. */
export function sees(visible: VisibleTransactions, xid: number): boolean {
  const id = widenXid(xid, visible.xmax);
  if (id < visible.xmin) return true;
  if (visible.inRecovery) return false;
  return id < visible.xmax && !visible.inProgress.has(id);
}

/**
 * The transaction id with this lower half that is nearest to another: no two that are in use are further apart than 2^31.
 *
 * @see {@link https://www.postgresql.org/docs/current/routine-vacuuming.html#VACUUM-FOR-WRAPAROUND | Preventing Transaction ID Wraparound Failures}
 */
export function widenXid(xid: number, near: bigint): bigint {
  return near + BigInt.asIntN(32, BigInt(xid) - near);
}

/**
 * The first transaction id that had not been given out, from what `age('3'::xid)` said beside a snapshot. A snapshot alone does not tell it:
 * its `xmax` is behind the last that has ended, and a later one may have written its commit already.
 */
export function nextXid(age: number, { xmax }: VisibleTransactions): bigint {
  return widenXid((age + 3) >>> 0, xmax);
}
