import type { CommandSession } from './session.js';

/** Of what began since a transaction: with more, it takes less to have that sent once more. */
const MOST_TO_ASK = 100_000;

/**
 * The server knows transactions by 64 bits, and sends 32 of them: those of one that is less than 2^31 away from the newest. What is still
 * running by this belongs to the commit that has been sent.
 */
const NEWEST = `(
  SELECT CAST(CAST(pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot()) AS pg_catalog.text) AS pg_catalog.int8)
) AS newest (xid)`;

/** With all of its bits. */
function whole(xid: string): string {
  return `newest.xid - ((newest.xid - ${xid} + 6442450944) % 4294967296 - 2147483648)`;
}

/** Whether a transaction that was given with all of its bits was rolled back, or is so old that nobody knows. */
function isRolledBack(xid: string): string {
  return `COALESCE(pg_catalog.pg_xact_status(CAST(CAST(${xid} AS pg_catalog.text) AS pg_catalog.xid8)), 'aborted') = 'aborted'`;
}

const ROLLED_BACK_QUERY = `
SELECT
  FROM pg_catalog.unnest(CAST(CAST($1 AS pg_catalog.text) AS pg_catalog.int8[])) AS asked
 CROSS JOIN ${NEWEST}
 WHERE ${isRolledBack(whole('asked'))}
 LIMIT 1`;

const ROLLED_BACK_SINCE_QUERY = `
SELECT
  FROM (SELECT newest.xid AS behind, ${whole('CAST(CAST($1 AS pg_catalog.text) AS pg_catalog.int8)')} AS xid FROM ${NEWEST}) AS own
 CROSS JOIN LATERAL pg_catalog.generate_series(own.xid + 1, LEAST(own.behind - 1, own.xid + ${MOST_TO_ASK})) AS later (xid)
 WHERE own.behind - own.xid > ${MOST_TO_ASK}
    OR (${isRolledBack('later.xid')}
   AND later.xid % 4294967296 NOT IN (SELECT pg_catalog.unnest(CAST(CAST($2 AS pg_catalog.text) AS pg_catalog.int8[]))))
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

/**
 * Whether any transaction or subtransaction was rolled back that began after this one, but for those that are known; or too many began to ask about
 * each. Which of them are subtransactions of this one nobody knows.
 *
 * @param xid - of a transaction whose commit has been sent
 */
export async function mayBeRolledBackSince(
  session: CommandSession,
  xid: number,
  known: readonly number[],
): Promise<boolean> {
  const rows = await session.query(ROLLED_BACK_SINCE_QUERY, [
    String(xid),
    `{${known.join(',')}}`,
  ]);
  return rows.length > 0;
}
