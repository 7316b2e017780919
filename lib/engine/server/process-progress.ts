import { shownName } from '../model/shown-name.js';
import type { Blocker } from '../telemetry/source-wait.js';
import type { CommandProgress } from './command-watch.js';
import type { CommandSession, TextRow } from './session.js';

/**
 * Who keeps the process `$1` from a lock: the first that has it or awaits it before. A prepared transaction is none of the processes: it is
 * found by the lock that it has on its own id.
 *
 * @see {@link https://www.postgresql.org/docs/current/functions-info.html#FUNCTIONS-INFO-SESSION | pg_blocking_pids}
 */
const QUERY = `
  select coalesce(a.state, 'active') in ('active', 'disabled') and coalesce(a.wait_event, '') not in ('ClientRead', 'ClientWrite') as under_way,
    b.pid, h.application_name, p.gid,
    pg_catalog.floor(extract(epoch from pg_catalog.now() - coalesce(p.prepared, h.xact_start))) as age
  from pg_catalog.pg_stat_activity a
    left join lateral (select pid from pg_catalog.unnest(pg_catalog.pg_blocking_pids(a.pid)) pid limit 1) b on true
    left join pg_catalog.pg_stat_activity h on h.pid = b.pid
    left join lateral (
      select x.gid, x.prepared from pg_catalog.pg_locks w
        join pg_catalog.pg_locks g on g.database = w.database and g.relation = w.relation and g.pid is null and g.granted
        join pg_catalog.pg_locks i on i.locktype = 'transactionid' and i.pid is null and i.virtualtransaction = g.virtualtransaction
        join pg_catalog.pg_prepared_xacts x on x.transaction = i.transactionid
      where w.pid = a.pid and not w.granted and b.pid = 0 limit 1) p on true
  where a.pid = cast($1 as pg_catalog.int4)`;

/**
 * Asks how the command of the process `pid` of the server gets on. It is not under way when the process has sent all that there is, or waits
 * for its client to take it: nothing but a fault of the connection keeps that from a client which reads. Where `track_activities` is
 * off only what it waits for says so.
 */
export async function readProcessProgress(
  session: CommandSession,
  pid: string,
): Promise<CommandProgress> {
  const [row] = await session.query(QUERY, [pid]);
  return row?.['under_way'] === 't'
    ? { underWay: true, blocker: blockerOf(row) }
    : { underWay: false, blocker: null };
}

function blockerOf(row: TextRow): Blocker | null {
  const pid = Number(row['pid'] ?? 0);
  const age = row['age'] ?? null;
  const ageSeconds = age === null ? null : Number(age);
  const gid = row['gid'] ?? null;
  if (gid !== null)
    return {
      for: 'prepared_transaction',
      pid: null,
      ageSeconds,
      name: shownName(gid),
    };
  if (pid === 0) return null;
  const name = shownName(row['application_name'] ?? '') || null;
  return { for: 'lock', pid, ageSeconds, name };
}
