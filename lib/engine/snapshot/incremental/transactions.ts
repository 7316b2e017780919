import { ConnectionFault } from '../../model/connection-fault.js';
import { shownName } from '../../model/shown-name.js';
import type { Blocker } from '../../telemetry/source-wait.js';
import type { CommandSession } from '../../server/session.js';
import { parseSnapshot } from './snapshot-text.js';
import { nextXid } from './visibility.js';

/** Reads the first transaction id that was not given out. */
export async function readNextXid(session: CommandSession): Promise<bigint> {
  const [row] = await session.query(
    "select pg_catalog.pg_current_snapshot() as snapshot, pg_catalog.age('3'::pg_catalog.xid) as age",
  );
  const visible = parseSnapshot(row?.['snapshot'] ?? '', false);
  const age = Number(row?.['age'] ?? NaN);
  if (visible === null || !Number.isInteger(age))
    throw new ConnectionFault('the server does not tell its transactions');
  return nextXid(age, visible);
}

/** Asks who has opened a transaction that is in progress. One of a primary is unknown to its standby. */
export async function readHolder(
  session: CommandSession,
  xid: bigint,
): Promise<Blocker> {
  const [row] = await session.query(
    'select a.pid, a.application_name, p.gid,' +
      ' pg_catalog.floor(extract(epoch from pg_catalog.now() - coalesce(a.xact_start, p.prepared))) as age' +
      ' from (select $1::pg_catalog.xid as xid) t' +
      ' left join pg_catalog.pg_stat_activity a on a.backend_xid = t.xid' +
      ' left join pg_catalog.pg_prepared_xacts p on p.transaction = t.xid',
    [String(BigInt.asUintN(32, xid))],
  );
  const { pid = null, gid = null, age = null } = row ?? {};
  const name = shownName(gid ?? row?.['application_name'] ?? '') || null;
  return {
    for: gid === null ? 'transaction' : 'prepared_transaction',
    pid: pid === null ? null : Number(pid),
    ageSeconds: age === null ? null : Number(age),
    name,
  };
}
