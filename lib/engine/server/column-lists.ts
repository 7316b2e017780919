import { HaltError } from '../model/halt.js';
import { quoteLiteral } from './identifiers.js';
import type { CommandSession } from './session.js';

/**
 * Makes sure that publications agree on the columns of each table: the server refuses to decode a change of a table
 * on which they differ. What differs through partitions is left to the server. Reads catalogs alone.
 *
 * @throws {HaltError} `publication/column_lists`
 * @see {@link https://www.postgresql.org/docs/current/logical-replication-col-lists.html | Column lists}
 */
export async function requireAgreeingColumnLists(
  session: CommandSession,
  names: readonly string[],
): Promise<void> {
  if (names.length < 2) return;
  const rows = await session.query(disagreements(names));
  const row = rows[0];
  if (row === undefined) return;
  const { table, publications, lister, columns } = row;
  throw new HaltError('publication/column_lists', {
    detail: `${publications} publish different columns of ${table}; ${lister} publishes ${columns}`,
  });
}

function disagreements(names: readonly string[]): string {
  return `with
    pub as (
      select p.oid, p.pubname, p.puballtables, p.pubviaroot, pg_catalog.to_jsonb(p) ->> 'pubgencols' as generated
      from pg_catalog.pg_publication p where p.pubname in (${names.map(quoteLiteral).join(', ')})),
    listed as (
      select distinct c.oid, c.relname, c.relnamespace, c.relkind
      from pub p join pg_catalog.pg_publication_rel r on r.prpubid = p.oid and r.prattrs is not null
        join pg_catalog.pg_class c on c.oid = r.prrelid and not c.relispartition),
    carried as (
      select l.oid, l.relname, l.relnamespace, p.pubname, r.prattrs, (
        select pg_catalog.string_agg(pg_catalog.quote_ident(a.attname), ', ' order by a.attnum)
        from pg_catalog.pg_attribute a where a.attrelid = l.oid and a.attnum > 0 and not a.attisdropped
          and case when r.prattrs is not null then a.attnum = any (r.prattrs)
            else a.attgenerated = '' or a.attgenerated = p.generated end) as columns
      from listed l join pub p on l.relkind = 'r' or p.pubviaroot
        left join pg_catalog.pg_publication_rel r on r.prpubid = p.oid and r.prrelid = l.oid
      where r.oid is not null or p.puballtables or exists (
        select from pg_catalog.pg_publication_namespace n where n.pnpubid = p.oid and n.pnnspid = l.relnamespace))
    select pg_catalog.format('%I.%I', s.nspname, c.relname) as table,
      pg_catalog.string_agg(pg_catalog.quote_ident(c.pubname), ', ' order by c.pubname) as publications,
      (pg_catalog.array_agg(pg_catalog.quote_ident(c.pubname) order by c.prattrs is null, c.pubname))[1] as lister,
      (pg_catalog.array_agg(c.columns order by c.prattrs is null, c.pubname))[1] as columns
    from carried c join pg_catalog.pg_namespace s on s.oid = c.relnamespace
    group by c.oid, c.relname, s.nspname having pg_catalog.count(distinct c.columns) > 1
    order by 1 limit 1`;
}
