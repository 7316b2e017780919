import pg, { type Client } from 'pg';
import { HaltError } from '../model/halt.js';
import type { CopyDataListener } from './copy-data-splitter.js';
import { announcedProcessId, destroySocket } from './pg-internals.js';
import {
  commandSession,
  openClient,
  tornDownOnAbort,
  withSqlSession,
  type CommandSession,
  type SessionTarget,
} from './session.js';

const INSUFFICIENT_PRIVILEGE = '42501';
/** By which poolers refuse the parameter that asks for a replication session; servers do not. */
const REFUSED_BY_POOLERS: readonly string[] = ['08P01', '0A000'];

/**
 * Connects a client to a WAL sender, and makes sure that it is one of its own.
 *
 * @param copyData - gets the CopyData messages of the session
 * @throws {HaltError} `preflight/replication_role`, `preflight/pooler`, or `command_error/permanent` without CONNECT
 */
export async function openReplicationClient(
  target: SessionTarget,
  copyData: CopyDataListener | null = null,
): Promise<Client> {
  const client = await logIn(target, copyData);
  try {
    await tornDownOnAbort(client, target.signal, () =>
      requireOwnWalSender(client, target),
    );
    return client;
  } catch (error) {
    destroySocket(client);
    throw error;
  }
}

async function logIn(
  target: SessionTarget,
  copyData: CopyDataListener | null,
): Promise<Client> {
  try {
    return await openClient(target, 'replication', copyData);
  } catch (error) {
    const code = sqlStateOf(error);
    if (code === INSUFFICIENT_PRIVILEGE) await explainLackOfPrivilege(target);
    else if (code !== null && REFUSED_BY_POOLERS.includes(code))
      await explainRefusedParameter(target, code);
    throw error;
  }
}

/**
 * REPLICATION and CONNECT are refused with the same SQLSTATE. An ordinary session needs CONNECT alone; it is asked after
 * the refusal only, since a managed service may admit a role that has the attribute by membership.
 *
 * @see {@link https://www.postgresql.org/docs/current/logical-replication-security.html | Logical replication security}
 */
async function explainLackOfPrivilege(target: SessionTarget): Promise<void> {
  let lacking: string | null;
  try {
    lacking = await withSqlSession(target, findLackOfReplication);
  } catch (error) {
    if (sqlStateOf(error) !== INSUFFICIENT_PRIVILEGE) throw error;
    throw new HaltError('command_error/permanent', {
      detail:
        'server error 42501 while connecting, on an ordinary session too; run, for the database and the role of the connection: GRANT CONNECT ON DATABASE … TO …',
    });
  }
  if (lacking !== null)
    throw new HaltError('preflight/replication_role', { detail: lacking });
}

async function findLackOfReplication(
  session: CommandSession,
): Promise<string | null> {
  const rows = await session.query(
    'select pg_catalog.quote_ident(r.rolname) as role, r.rolsuper or r.rolreplication as admitted,' +
      " exists (select from pg_catalog.pg_roles where rolname = 'rds_replication') as rds" +
      ' from pg_catalog.pg_roles r where r.rolname = session_user',
  );
  const row = rows[0];
  if (row === undefined || row['admitted'] === 't') return null;
  const role = row['role'] ?? '';
  const grant =
    row['rds'] === 't'
      ? `GRANT rds_replication TO ${role}`
      : `ALTER ROLE ${role} REPLICATION`;
  return `the role ${role} lacks REPLICATION; run: ${grant}`;
}

/** Whoever admits ordinary sessions and refuses replication by such a code is no server. */
async function explainRefusedParameter(
  target: SessionTarget,
  code: string,
): Promise<void> {
  await withSqlSession(target, async () => {});
  throw new HaltError('preflight/pooler', {
    detail: `ordinary sessions are admitted, replication is refused with ${code}`,
  });
}

/**
 * A pooler that drops the parameter gives an ordinary session. One that hands out its server processes statement by
 * statement or transaction by transaction loses the pinned settings, and leaves them to others. A proxy that only
 * announces process ids of its own does no harm.
 */
async function requireOwnWalSender(
  client: Client,
  target: SessionTarget,
): Promise<void> {
  const rows = await commandSession(client).query(
    'select a.pid, a.backend_type from pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid()) a',
  );
  const row = rows[0];
  if (row?.['backend_type'] === 'client backend') {
    throw new HaltError('preflight/pooler', {
      detail: 'replication was asked for, and an ordinary session was given',
    });
  }
  const announced = announcedProcessId(client);
  if (announced === null || row?.['pid'] === String(announced)) return;
  if (await sharesProcesses(target)) {
    throw new HaltError('preflight/pooler', {
      detail: 'several sessions are given the same server process',
    });
  }
}

async function sharesProcesses(target: SessionTarget): Promise<boolean> {
  return withSqlSession(target, async (session) => {
    const before = await processId(session);
    const other = await withSqlSession(target, processId);
    return other === before || (await processId(session)) !== before;
  });
}

async function processId(session: CommandSession): Promise<string | null> {
  const rows = await session.query('select pg_catalog.pg_backend_pid() as pid');
  return rows[0]?.['pid'] ?? null;
}

function sqlStateOf(error: unknown): string | null {
  return error instanceof pg.DatabaseError ? (error.code ?? null) : null;
}
