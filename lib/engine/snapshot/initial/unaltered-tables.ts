import { ConnectionFault } from '../../model/connection-fault.js';
import type { CaptureSet } from '../../server/capture/capture-set.js';
import { hasSqlstate } from '../../server/error-classes.js';
import type { PublishedTable } from '../../server/published-table.js';
import {
  withSqlSession,
  type CommandSession,
  type SessionTarget,
  type TextRow,
} from '../../server/session.js';

/** SQLSTATEs of a schema, a table and a column that are not there. */
const MISSING = ['3F000', '42P01', '42703'];

/**
 * The tables with the OIDs in `$1` and the partitions of those that are partitioned: where each is stored, and its names and columns.
 * Reads catalogs alone, because a table itself shows the present even to an old snapshot.
 */
const TABLES = `
  with recursive tree (oid, relkind) as (
    select c.oid, c.relkind from pg_catalog.pg_class c
      where c.oid = any (cast($1 as pg_catalog.oid[]))
    union
    select c.oid, c.relkind from tree t
      join pg_catalog.pg_inherits i on i.inhparent = t.oid and t.relkind = 'p'
      join pg_catalog.pg_class c on c.oid = i.inhrelid)
  select c.oid, c.relfilenode, n.nspname, c.relname,
    (select pg_catalog.jsonb_agg(array[a.attnum::text, a.attname::text, a.atttypid::text] order by a.attnum)
       from pg_catalog.pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped) as columns
  from tree t
    join pg_catalog.pg_class c on c.oid = t.oid
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  order by c.oid`;

/**
 * Makes sure that the tables, which are locked now, are still what the snapshot of the session sees: a table that was rewritten meanwhile reads
 * as empty, and which tables there are to read, and by which names, is told as of the present.
 *
 * @param session - of a transaction in the snapshot
 * @throws {ConnectionFault} when something was altered; a new snapshot sees it as it is
 */
export async function requireUnaltered(
  session: CommandSession,
  target: SessionTarget,
  capture: CaptureSet,
  tables: readonly PublishedTable[],
): Promise<void> {
  const oids = `{${tables.map(({ oid }) => oid).join(',')}}`;
  const state = async (asked: CommandSession) => [
    await asked.query(TABLES, [oids]),
    await capture.state(asked),
  ];
  const seen = await state(session);
  const present = await withSqlSession(target, state);
  if (!same(seen, present)) throw altered();
  if (await capture.hasLostTables(session)) throw altered();
}

/** Runs statements of which a name may be gone. */
export async function refusingMissing<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw MISSING.some((sqlstate) => hasSqlstate(error, sqlstate))
      ? altered()
      : error;
  }
}

function altered(): ConnectionFault {
  return new ConnectionFault(
    'a table or a publication was altered after the snapshot was taken',
  );
}

function same(
  a: readonly (readonly TextRow[])[],
  b: readonly (readonly TextRow[])[],
): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
