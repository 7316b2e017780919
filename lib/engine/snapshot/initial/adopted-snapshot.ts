import { ConnectionFault } from '../../model/connection-fault.js';
import { quoteLiteral } from '../../server/identifiers.js';
import { hasSqlstate } from '../../server/error-classes.js';
import type { SessionTarget } from '../../server/session.js';
import { CopySession } from '../copy-session.js';

/** As the server names an exported snapshot: two hexadecimal numbers of its process, and a decimal one. */
const SNAPSHOT_NAME = /^[0-9A-F]{1,16}-[0-9A-F]{1,16}-[0-9]{1,10}$/;

/**
 * SQLSTATEs of a snapshot that its session does not export any more: it has ended (invalid_parameter_value, from
 * PostgreSQL 17 on undefined_object), or ends just now (object_not_in_prerequisite_state).
 */
const GONE = ['22023', '42704', '55000'];

/**
 * Opens a session in a transaction that sees what the exported snapshot sees. It keeps that when the exporting session ends.
 *
 * @throws {ConnectionFault} when the snapshot is not exported any more
 * @see {@link https://www.postgresql.org/docs/current/sql-set-transaction.html | SET TRANSACTION SNAPSHOT}
 */
export async function openInSnapshot(
  target: SessionTarget,
  snapshotName: string,
): Promise<CopySession> {
  if (!SNAPSHOT_NAME.test(snapshotName))
    throw new ConnectionFault('the server gave its snapshot an unknown name');
  const session = await CopySession.open(target);
  try {
    await session.commands.query(
      'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY',
    );
    await session.commands.query(
      `SET TRANSACTION SNAPSHOT ${quoteLiteral(snapshotName)}`,
    );
    return session;
  } catch (error) {
    session.destroy();
    throw GONE.some((sqlstate) => hasSqlstate(error, sqlstate))
      ? new ConnectionFault('the exported snapshot is gone')
      : error;
  }
}
