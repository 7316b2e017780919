import { HaltError } from '../model/halt.js';
import type { CommandSession } from './session.js';

const OLDEST_VERSION = 150_000;
/** No object has it. */
const INVALID_OID = 0;
const DEFAULT_WAL_SENDER_TIMEOUT_MS = 60_000;

/** What the server says of itself. */
export interface ServerFacts {
  /** `server_version_num`, such as 180004. */
  readonly version: number;
  /** `wal_sender_timeout` of this session in milliseconds; 0 when it is off. */
  readonly walSenderTimeoutMs: number;
  /** A standby that is not promoted. */
  readonly inRecovery: boolean;
  /** Of the database that the connection leads to. */
  readonly databaseOid: number;
}

/**
 * Asks for version, WAL level and timeouts.
 *
 * @throws {HaltError} `config/server_too_old` below PostgreSQL 15, `preflight/wal_level` where nothing can be decoded
 */
export async function probeServer(
  session: CommandSession,
): Promise<ServerFacts> {
  const rows = await session.query(
    "select pg_catalog.current_setting('server_version_num') as version," +
      ' pg_catalog.pg_is_in_recovery() as in_recovery,' +
      ' (select oid from pg_catalog.pg_database where datname = pg_catalog.current_database()) as database_oid,' +
      " pg_catalog.current_setting('wal_level') as wal_level," +
      " (select setting from pg_catalog.pg_settings where name = 'wal_sender_timeout') as wal_sender_timeout",
  );
  const version = Number(rows[0]?.['version'] ?? Number.NaN);
  if (!(version >= OLDEST_VERSION)) {
    throw new HaltError('config/server_too_old', {
      detail: Number.isNaN(version)
        ? 'the server does not tell its version'
        : `the server's version is ${version}`,
    });
  }
  const walLevel = rows[0]?.['wal_level'];
  if (walLevel !== 'logical') {
    throw new HaltError('preflight/wal_level', {
      detail: `wal_level is ${walLevel ?? 'not told'}`,
    });
  }
  const timeout = Number(rows[0]?.['wal_sender_timeout'] ?? Number.NaN);
  return {
    version,
    walSenderTimeoutMs: Number.isNaN(timeout)
      ? DEFAULT_WAL_SENDER_TIMEOUT_MS
      : timeout,
    inRecovery: rows[0]?.['in_recovery'] === 't',
    databaseOid: Number(rows[0]?.['database_oid'] ?? INVALID_OID),
  };
}
