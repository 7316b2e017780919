import type { CommandSession } from './session.js';

/**
 * The server knows transactions by 64 bits, and sends 32 of them: those of one that is less than 2^31 away from the newest. What is still
 * running by this belongs to the commit that has been sent.
 */
const ROLLED_BACK_QUERY = `
SELECT
  FROM pg_catalog.unnest(CAST(CAST($1 AS pg_catalog.text) AS pg_catalog.int8[])) AS asked
 CROSS JOIN (
  SELECT CAST(CAST(pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot()) AS pg_catalog.text) AS pg_catalog.int8)
) AS newest (xid)
 WHERE COALESCE(pg_catalog.pg_xact_status(CAST(CAST(
  newest.xid - ((newest.xid - asked + 6442450944) % 4294967296 - 2147483648)
 AS pg_catalog.text) AS pg_catalog.xid8)), 'aborted') = 'aborted'
 LIMIT 1`;

/**
 * Whether any of these subtransactions was rolled back, or is so old that nobody knows.
 *
 * @param subxids - of transactions whose commit has been sent
 * @see {@link https://www.postgresql.org/docs/current/functions-info.html#FUNCTIONS-INFO-SNAPSHOT | Transaction ID and Snapshot Information Functions}
 */
export async function mayBeRolledBack(
  session: CommandSession,
  subxids: readonly number[],
): Promise<boolean> {
  const rows = await session.query(ROLLED_BACK_QUERY, [
    `{${subxids.join(',')}}`,
  ]);
  return rows.length > 0;
}
