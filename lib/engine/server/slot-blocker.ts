import { shownName } from '../model/shown-name.js';
import type { Blocker } from '../telemetry/source-wait.js';
import type { CommandProgress } from './command-watch.js';
import type { CommandSession, TextRow } from './session.js';

/**
 * Whoever creates a slot waits for the transactions that were running, one after the other, through the lock that each holds
 * on its own id. A prepared transaction holds it without a process.
 */
const QUERY =
  'select exists (select from pg_catalog.pg_replication_slots where active_pid = c.pid and slot_name = $2) as under_way,' +
  ' h.pid, p.gid, a.application_name, pg_catalog.pg_is_in_recovery() as standby,' +
  ' pg_catalog.floor(extract(epoch from pg_catalog.now() - coalesce(p.prepared, a.xact_start))) as age' +
  ' from (select $1::pg_catalog.int4 as pid) c' +
  " left join pg_catalog.pg_locks w on w.pid = c.pid and w.locktype = 'transactionid' and not w.granted" +
  " left join pg_catalog.pg_locks h on h.locktype = 'transactionid' and h.transactionid = w.transactionid and h.granted" +
  ' left join pg_catalog.pg_stat_activity a on a.pid = h.pid' +
  ' left join pg_catalog.pg_prepared_xacts p on p.transaction = w.transactionid' +
  ' limit 1';

/** Asks whether the process `creator` of the server creates this slot, and what it waits for. */
export async function readCreation(
  session: CommandSession,
  creator: string,
  slotName: string,
): Promise<CommandProgress> {
  const [row] = await session.query(QUERY, [creator, slotName]);
  return row?.['under_way'] === 't'
    ? { underWay: true, blocker: blockerOf(row) }
    : { underWay: false, blocker: null };
}

function blockerOf(row: TextRow): Blocker | null {
  const ageSeconds = numberOf(row['age']);
  const gid = row['gid'] ?? null;
  if (gid !== null) {
    const name = shownName(gid);
    return { for: 'prepared_transaction', pid: null, ageSeconds, name };
  }
  const pid = numberOf(row['pid']);
  if (pid !== null) {
    const name = shownName(row['application_name'] ?? '') || null;
    return { for: 'transaction', pid, ageSeconds, name };
  }
  return row['standby'] === 't'
    ? { for: 'wal', pid: null, ageSeconds: null, name: null }
    : null;
}

function numberOf(text: string | null | undefined): number | null {
  return text === null || text === undefined ? null : Number(text);
}
