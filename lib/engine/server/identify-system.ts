import { HaltError } from '../model/halt.js';
import { parseLsn } from '../model/lsn.js';
import type { SessionIdentity } from '../model/session-identity.js';
import type { CommandSession } from './session.js';

const DECIMAL = /^\d{1,20}$/;
const LARGEST_SYSTEM_IDENTIFIER = 2n ** 64n - 1n;
const LARGEST_TIMELINE = 2 ** 32 - 1;

/**
 * Asks the server, on the connection that will stream, who it is.
 *
 * @throws {HaltError} `session_identity/rejected` when the answer is not that of a logical replication session
 */
export async function identifySystem(
  session: CommandSession,
): Promise<SessionIdentity> {
  const rows = await session.query('IDENTIFY_SYSTEM');
  const row = rows[0];
  const systemIdentifier = row?.['systemid'] ?? '';
  const timeline = row?.['timeline'] ?? '';
  const flushedLsn = parseLsn(row?.['xlogpos'] ?? '');
  const database = row?.['dbname'] ?? '';
  if (
    rows.length !== 1 ||
    !DECIMAL.test(systemIdentifier) ||
    BigInt(systemIdentifier) > LARGEST_SYSTEM_IDENTIFIER ||
    !DECIMAL.test(timeline) ||
    Number(timeline) > LARGEST_TIMELINE ||
    flushedLsn === null ||
    database === ''
  ) {
    throw new HaltError('session_identity/rejected', {
      detail:
        'IDENTIFY_SYSTEM was not answered as a PostgreSQL server answers it',
    });
  }
  return { systemIdentifier, timeline: Number(timeline), flushedLsn, database };
}
