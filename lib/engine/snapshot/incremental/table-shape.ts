import type { CommandSession } from '../../server/session.js';

/**
 * A number for what a copy of the table `oid` depends on: its name, its columns, by which of them its rows are identified and ordered, and what
 * publications say of it. `null` for a table that is gone.
 */
export function tableShapeSql(oid: string): string {
  return `(select pg_catalog.hashtextextended(pg_catalog.concat_ws(';', n.nspname, c.relname, c.relkind, c.relreplident,
    (select pg_catalog.string_agg(pg_catalog.concat_ws(',', a.attnum, a.attname, a.atttypid, a.atttypmod, a.attcollation, a.attgenerated),
        ';' order by a.attnum)
      from pg_catalog.pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped),
    (select pg_catalog.string_agg(pg_catalog.concat_ws(',', i.indexrelid, i.indisprimary, i.indisreplident), ';' order by i.indexrelid)
      from pg_catalog.pg_index i where i.indrelid = c.oid and (i.indisprimary or i.indisreplident)),
    (select pg_catalog.string_agg(pg_catalog.concat_ws(',', r.prpubid, r.prattrs, r.prqual), ';' order by r.prpubid)
      from pg_catalog.pg_publication_rel r where r.prrelid = c.oid)), 0)
  from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace where c.oid = ${oid})`;
}

/** What {@link tableShapeSql} gives for these tables, by their OIDs. */
export async function readTableShapes(
  session: CommandSession,
  oids: readonly number[],
): Promise<ReadonlyMap<number, string>> {
  const rows = await session.query(
    `select t.oid, ${tableShapeSql('t.oid')} as shape from pg_catalog.unnest($1::pg_catalog.oid[]) t(oid)`,
    [`{${oids.join(',')}}`],
  );
  return new Map(rows.map((row) => [Number(row['oid']), row['shape'] ?? '']));
}
