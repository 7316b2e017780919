import { shownName } from '../model/shown-name.js';
import { quoteLiteral } from './identifiers.js';
import type { CommandSession } from './session.js';

/**
 * Finds tables that a sink asks for by name and no publication carries, for instance because the name is misspelt: nothing of them ever
 * comes, and nobody would notice.
 *
 * @param tables - as `change.relation` has them: `schema.table`, without quotes
 * @returns a sentence for each
 */
export async function adviseTables(
  session: CommandSession,
  publications: readonly string[],
  tables: readonly string[],
): Promise<string[]> {
  if (tables.length === 0) return [];
  const rows = await session.query(
    `select wanted.name from (values ${tables.map((name) => `(${quoteLiteral(name)})`).join(', ')}) as wanted (name)
      where not exists (select from pg_catalog.pg_publication_tables p
        where p.pubname in (${publications.map(quoteLiteral).join(', ')})
          and p.schemaname || '.' || p.tablename = wanted.name)
      order by 1`,
  );
  return rows.map(
    ({ name }) =>
      `no publication of the pipeline carries ${shownName(name ?? '')}, whose changes the sink asks for, so nothing of it comes; correct the name, or add the table to the publication`,
  );
}
