import { ConnectionFault } from '../../model/connection-fault.js';
import { hasSqlstate } from '../../server/error-classes.js';
import type { PublishedTable } from '../../server/published-table.js';
import type {
  CommandSession,
  SessionTarget,
  TextRow,
} from '../../server/session.js';
import { withSqlSession } from '../../server/session.js';
import { selectFrom } from '../table-query.js';

/** Tables of one LOCK statement. */
const TABLES_PER_LOCK = 500;

/** SQLSTATEs of what is not there, or not any more under its name: table, column, schema. */
const MISSING = ['42P01', '42703', '3F000'];

/**
 * What the catalog has of the tables with the OIDs in `$1`, and of the partitions of those that are partitioned: where they are stored, and the names
 * and types of their columns.
 */
const CATALOG_STATE = `
  with recursive tree (oid, relkind) as (
    select c.oid, c.relkind from pg_catalog.pg_class c
      where c.oid = any (cast($1 as pg_catalog.oid[]))
    union
    select c.oid, c.relkind from tree t
      join pg_catalog.pg_inherits i on i.inhparent = t.oid and t.relkind = 'p'
      join pg_catalog.pg_class c on c.oid = i.inhrelid)
  select c.oid, c.relnamespace, n.nspname, c.relname, c.relfilenode,
    (select pg_catalog.jsonb_agg(array[a.attnum::text, a.attname::text, a.atttypid::text] order by a.attnum)
       from pg_catalog.pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped) as columns
  from tree t join pg_catalog.pg_class c on c.oid = t.oid
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  order by c.oid`;

/**
 * Keeps the tables from being rewritten, emptied, dropped or altered while this transaction is open, and makes sure that none was since its
 * snapshot was taken: a rewritten table reads as empty in an older snapshot.
 *
 * @param session - of a transaction in the snapshot
 * @throws {ConnectionFault} when one was; a new snapshot sees it as it is now
 */
export async function lockTables(
  session: CommandSession,
  target: SessionTarget,
  tables: readonly PublishedTable[],
): Promise<void> {
  const oids = `{${tables.map(({ oid }) => oid).join(',')}}`;
  const seen = await session.query(CATALOG_STATE, [oids]);
  for (let at = 0; at < tables.length; at += TABLES_PER_LOCK) {
    const names = tables
      .slice(at, at + TABLES_PER_LOCK)
      .map((table) => selectFrom(table).from);
    await refusingMissing(() =>
      // Whoever has altered a table may hold it for long.
      session.queryPatiently(
        `LOCK TABLE ${names.join(', ')} IN ACCESS SHARE MODE`,
      ),
    );
  }
  const now = await withSqlSession(target, (fresh) =>
    fresh.query(CATALOG_STATE, [oids]),
  );
  if (!sameRows(seen, now)) throw rewritten();
}

/** Runs a statement; a name that is gone in the meantime is a table that was altered. */
export async function refusingMissing<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw MISSING.some((sqlstate) => hasSqlstate(error, sqlstate))
      ? rewritten()
      : error;
  }
}

function rewritten(): ConnectionFault {
  return new ConnectionFault(
    'a table was rewritten or altered after the snapshot was taken',
  );
}

function sameRows(a: readonly TextRow[], b: readonly TextRow[]): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
