import { ConnectionFault } from '../model/connection-fault.js';
import { parseLsn, type Lsn } from '../model/lsn.js';
import type { CommandSession } from './session.js';

/** How far the server's WAL reaches that a stream can be sent: flushed, or replayed on a standby. */
export function readWalEnd(session: CommandSession): Promise<Lsn> {
  return readEnd(session, 'pg_current_wal_flush_lsn');
}

/** Where the next record goes: behind whatever has committed, flushed or not. */
export function readInsertPosition(session: CommandSession): Promise<Lsn> {
  return readEnd(session, 'pg_current_wal_insert_lsn');
}

async function readEnd(
  session: CommandSession,
  position: 'pg_current_wal_flush_lsn' | 'pg_current_wal_insert_lsn',
): Promise<Lsn> {
  const rows = await session.query(
    'select case when pg_catalog.pg_is_in_recovery() then pg_catalog.pg_last_wal_replay_lsn()' +
      ` else pg_catalog.${position}() end as wal_end`,
  );
  const walEnd = parseLsn(rows[0]?.['wal_end'] ?? '');
  if (walEnd === null)
    throw new ConnectionFault('the server does not tell the end of its WAL');
  return walEnd;
}
