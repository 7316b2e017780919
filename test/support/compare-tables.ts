import { escapeIdentifier } from 'pg';
import type { Queryable } from './logical-slot.js';

/** How far a mirror is from its source, in rows. */
export interface Difference {
  readonly missing: number;
  readonly extra: number;
  readonly different: number;
}

export const NO_DIFFERENCE: Difference = { missing: 0, extra: 0, different: 0 };

interface PublishedTable extends Record<string, unknown> {
  schemaname: string;
  tablename: string;
  /** Columns of the primary key; empty when there is none. */
  key: string[];
}

/**
 * Compares the tables of a publication with those of the same names, row by row in PostgreSQL's text of the whole row.
 * Rows are matched by primary key; without one, equal rows are counted.
 */
export async function compareTables(
  source: Queryable,
  target: Queryable,
  publication = 'p',
): Promise<Difference> {
  const tables = await source.query<PublishedTable>(
    `select schemaname, tablename, array(
       select attname::text from pg_index
         join pg_attribute on attrelid = indrelid and attnum = any(indkey)
        where indisprimary and indrelid = format('%I.%I', schemaname, tablename)::regclass
     ) as key
     from pg_publication_tables where pubname = $1`,
    [publication],
  );
  if (tables.length === 0)
    throw new Error(`Publication ${publication} has no tables.`);
  const total = { missing: 0, extra: 0, different: 0 };
  for (const table of tables) {
    const [wanted, found] = await Promise.all([
      readRows(source, table),
      readRows(target, table),
    ]);
    const difference = compareRows(wanted, found);
    total.missing += difference.missing;
    total.extra += difference.extra;
    total.different += difference.different;
  }
  return total;
}

/** Transactions in the ledger of a mirror, and how many of them are there more than once. */
export async function countApplied(
  target: Queryable,
): Promise<{ readonly applied: number; readonly appliedTwice: number }> {
  const [counts] = await target.query<{
    applied: number;
    appliedTwice: number;
  }>(
    `select count(*)::int as applied, (count(*) filter (where times > 1))::int as "appliedTwice"
       from (select count(*) as times from ledger group by slot_name, commit_lsn) as transactions`,
  );
  if (counts === undefined) throw new Error('The ledger gave no counts.');
  return counts;
}

async function readRows(
  from: Queryable,
  { schemaname, tablename, key }: PublishedTable,
): Promise<Map<string, string[]>> {
  const whole = `${escapeIdentifier(schemaname)}.${escapeIdentifier(tablename)}`;
  const columns = key.map((column) => `t.${escapeIdentifier(column)}`);
  const rows = await from.query<{ key: string; row: string }>(
    `select ${columns.length === 0 ? 't' : `row(${columns.join(', ')})`}::text as key, t::text as row from ${whole} as t`,
  );
  const byKey = new Map<string, string[]>();
  for (const row of rows) {
    const same = byKey.get(row.key);
    if (same === undefined) byKey.set(row.key, [row.row]);
    else same.push(row.row);
  }
  return byKey;
}

function compareRows(
  wanted: ReadonlyMap<string, readonly string[]>,
  found: ReadonlyMap<string, readonly string[]>,
): Difference {
  const total = { missing: 0, extra: 0, different: 0 };
  for (const key of new Set([...wanted.keys(), ...found.keys()])) {
    const originals = wanted.get(key) ?? [];
    const copies = found.get(key) ?? [];
    total.missing += Math.max(0, originals.length - copies.length);
    total.extra += Math.max(0, copies.length - originals.length);
    originals.forEach((row, index) => {
      const copy = copies[index];
      if (copy !== undefined && copy !== row) total.different += 1;
    });
  }
  return total;
}
