import { ConnectionFault } from '../../model/connection-fault.js';
import { hasSqlstate } from '../../server/error-classes.js';
import type { PublishedTable } from '../../server/published-table.js';
import type { CommandSession } from '../../server/session.js';
import { selectFrom } from '../table-query.js';
import { refusingMissing } from './unaltered-tables.js';

/** Tables of one statement. */
const TABLES_PER_LOCK = 500;
const LOCK_NOT_AVAILABLE = '55P03';

/**
 * Keeps the tables from being rewritten, emptied, dropped or altered while the transaction of this session is open.
 *
 * @param patience - milliseconds; 0 for ever. Not for a session beside another that has the locks already: whoever wants to alter a table waits for that one, the server
 * lets nobody pass him, and sees no deadlock, for the other session waits for nothing
 * @throws {ConnectionFault} when a table is gone, or is about to be altered
 */
export async function lockTables(
  session: CommandSession,
  tables: readonly PublishedTable[],
  patience: number,
): Promise<void> {
  await session.queryPatiently(`SET LOCAL lock_timeout = ${patience}`);
  for (let at = 0; at < tables.length; at += TABLES_PER_LOCK) {
    const names = tables
      .slice(at, at + TABLES_PER_LOCK)
      .map((table) => selectFrom(table).from);
    await refusingMissing(() =>
      session.queryPatiently(
        `LOCK TABLE ${names.join(', ')} IN ACCESS SHARE MODE`,
      ),
    ).catch(refuseUnavailable);
  }
  // Nobody waits for us because of other locks, such as one on an index.
  await session.queryPatiently('SET LOCAL lock_timeout = 0');
}

function refuseUnavailable(error: unknown): never {
  throw hasSqlstate(error, LOCK_NOT_AVAILABLE)
    ? new ConnectionFault('a table that is to be copied is about to be altered')
    : error;
}
