import type { CheckpointHome } from '../model/checkpoint.js';
import { HaltError } from '../model/halt.js';
import { quoteIdentifier, quoteLiteral } from './identifiers.js';
import type { CommandSession } from './session.js';

/**
 * Makes sure that every publication exists: START_REPLICATION takes a missing one without a word.
 *
 * @throws {HaltError} `publication/missing`
 */
export async function requirePublications(
  session: CommandSession,
  names: readonly string[],
): Promise<void> {
  const rows = await session.query(
    `select pubname from pg_catalog.pg_publication where pubname in (${literals(names)})`,
  );
  const found = new Set(rows.map((row) => row['pubname']));
  const missing = names.filter((name) => !found.has(name));
  if (missing.length > 0) {
    throw new HaltError('publication/missing', {
      detail: `no publication ${missing.map(quoted).join(', ')}`,
    });
  }
}

/**
 * Makes sure that no publication carries the table in which the checkpoint is stored: each transaction would write
 * the checkpoint, and each checkpoint would be a transaction.
 *
 * @throws {HaltError} `preflight/self_feeding`
 */
export async function refuseSelfFeeding(
  session: CommandSession,
  names: readonly string[],
  home: CheckpointHome,
): Promise<void> {
  const rows = await session.query(
    'select p.pubname, p.puballtables from pg_catalog.pg_publication p,' +
      ' lateral pg_catalog.pg_get_publication_tables(p.pubname) t' +
      ` where p.pubname in (${literals(names)}) and t.relid = ${home.relationOid}::pg_catalog.oid`,
  );
  const row = rows[0];
  if (row === undefined) return;
  const publication = quoted(row['pubname'] ?? '');
  const mend =
    row['puballtables'] === 't'
      ? `drop publication ${publication} and create it for the tables that are meant, by name`
      : `run: alter publication ${publication} drop table ${home.quotedName}`;
  throw new HaltError('preflight/self_feeding', {
    detail: `publication ${publication} carries the checkpoint table ${home.quotedName}; ${mend}`,
  });
}

function literals(names: readonly string[]): string {
  return names.map(quoteLiteral).join(', ');
}

function quoted(name: string): string {
  return quoteIdentifier(name, 'publication');
}
