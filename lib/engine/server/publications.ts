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
    `select pubname from pg_catalog.pg_publication where pubname in (${names.map(quoteLiteral).join(', ')})`,
  );
  const found = new Set(rows.map((row) => row['pubname']));
  const missing = names.filter((name) => !found.has(name));
  if (missing.length > 0) {
    throw new HaltError('publication/missing', {
      detail: `no publication ${missing.map(quoted).join(', ')}`,
    });
  }
}

function quoted(name: string): string {
  return quoteIdentifier(name, 'publication');
}
