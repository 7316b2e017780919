import type { CaptureSet } from './capture/capture-set.js';
import { quoteLiteral } from './identifiers.js';

/**
 * Asks for the tables of a {@link CaptureSet}, in the order of their names: a row for each captured column in the order of the table, or one
 * row for a table without any. It wants an empty search_path.
 *
 * What belongs to a table is looked up for each by indexes of the catalog: a join would be one of nested loops over all of
 * them while the catalog has no statistics of new tables.
 */
export function capturedTablesSql(tablesSql: CaptureSet['tablesSql']): string {
  return `with ${tablesSql}
    select c.oid, n.nspname as schema, c.relname as table, pg_catalog.format('%I.%I', n.nspname, c.relname) as quoted_name,
      c.relkind = 'p' as partitioned, c.relreplident as identity, t.agreed, t.publications,
      case when s.not_streamed is null then t.row_filter
        else pg_catalog.concat_ws(' and ', '(' || t.row_filter || ')', 'tableoid <> all (' ||
          pg_catalog.quote_literal(s.not_streamed::pg_catalog.text) || '::pg_catalog.oid[])') end as row_filter,
      s.rows, case when s.rows > 0 then pg_catalog.ceil(s.bytes / s.rows) end as row_bytes,
      a.attname as column, pg_catalog.quote_ident(a.attname) as quoted_column, a.atttypid as type, a.atttypmod as modifier,
      c.relreplident = 'f' or coalesce(a.attnum = any (i.attnums), false) as key,
      pg_catalog.cardinality(o.attnums) as order_columns, k.place, k.quoted_type, k.operator_schema, k.quoted_collation
    from tables t
      join pg_catalog.pg_class c on c.oid = t.oid
      join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      left join lateral (${SIZES}) s on true
      left join lateral (${IDENTITY}) i on true
      left join lateral (${ORDER}) o on true
      left join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum = any (t.attnums)
      left join lateral (${KEY_COLUMN}) k on true
    order by n.nspname, c.relname, a.attnum`;
}

/**
 * Common table expressions for {@link CaptureSet.tablesSql}.
 *
 * A partition whose ancestor is carried is streamed under the name of that ancestor, and the publications that carry the partition itself
 * have no say; a publication lists a partitioned table only when it publishes through it. Unlogged and foreign tables, which it may list
 * as partitions, are not in the WAL. PostgreSQL 15 lists generated columns too; no release before 18 streams one.
 */
export function tablesOfPublicationsSql(
  publications: readonly string[],
): string {
  const names = publications.map(quoteLiteral).join(', ');
  return `listed as materialized (
      select p.pubname, p.attnames, p.rowfilter, c.oid, c.relispartition
      from pg_catalog.pg_publication_tables p
        join pg_catalog.pg_namespace n on n.nspname = p.schemaname
        join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = p.tablename
      where p.pubname in (${names}) and c.relkind in ('r', 'p') and c.relpersistence = 'p'),
    published as (
      select l.* from listed l
      where not l.relispartition or not exists (
        select from pg_catalog.pg_partition_ancestors(l.oid) a(oid)
        where a.oid <> l.oid and (a.oid in (select oid from listed)) is true)),
    carried as (
      select p.oid, p.pubname, p.rowfilter,
        coalesce(pg_catalog.array_agg(a.attnum order by a.attnum) filter (where a.attnum is not null), '{}') as attnums
      from published p left join pg_catalog.pg_attribute a
        on a.attrelid = p.oid and a.attnum > 0 and not a.attisdropped and a.attname = any (p.attnames)
          and (a.attgenerated = '' or pg_catalog.current_setting('server_version_num')::pg_catalog.int4 >= 180000)
      group by p.oid, p.pubname, p.rowfilter),
    tables as materialized (
      select oid, pg_catalog.min(attnums) as attnums, pg_catalog.count(distinct attnums) = 1 as agreed,
        pg_catalog.string_agg(pg_catalog.quote_ident(pubname), ', ' order by pubname) as publications,
        case when pg_catalog.count(rowfilter) = pg_catalog.count(*)
          then pg_catalog.string_agg(distinct '(' || rowfilter || ')', ' or ') end as row_filter
      from carried group by oid)`;
}

/**
 * The rows are in the table itself, or in the leaves of a partitioned one. Of a table that was never analysed only its size tells, that there
 * are none.
 */
const SIZES = `
        with recursive parts(oid, relkind, relpersistence, reltuples) as (
          select c.oid, c.relkind, c.relpersistence, c.reltuples
          union all
          select r.oid, r.relkind, r.relpersistence, r.reltuples from parts p
            join pg_catalog.pg_inherits h on h.inhparent = p.oid and p.relkind = 'p'
            join pg_catalog.pg_class r on r.oid = h.inhrelid)
        select case when pg_catalog.bool_and(m.rows is not null) then pg_catalog.sum(m.rows::pg_catalog.float8) end as rows,
          pg_catalog.sum(m.bytes::pg_catalog.float8) as bytes,
          pg_catalog.array_agg(m.oid order by m.oid) filter (where not m.streamed) as not_streamed
        from (
          select p.oid, true as streamed, case when p.reltuples > 0 then pg_catalog.pg_table_size(p.oid) end as bytes,
            case when p.reltuples >= 0 then p.reltuples when pg_catalog.pg_relation_size(p.oid) = 0 then 0 end as rows
          from parts p where p.relkind = 'r' and p.relpersistence = 'p'
          union all
          select p.oid, false, 0, 0 from parts p where p.relkind <> 'p' and not (p.relkind = 'r' and p.relpersistence = 'p')) m`;

/** A key has no columns that its index merely includes. A deferrable primary key is no replica identity. */
const IDENTITY = `
        select (x.indkey::pg_catalog.int2[])[0:x.indnkeyatts - 1] as attnums, x.indclass
        from pg_catalog.pg_index x where x.indrelid = c.oid and x.indisvalid and x.indimmediate
          and case c.relreplident when 'd' then x.indisprimary when 'i' then x.indisreplident else false end
        limit 1`;

/** The operator by which rows that follow another are found. */
const COMPARISON = `pg_catalog.pg_opclass e
            join pg_catalog.pg_amop g on g.amopfamily = e.opcfamily and g.amopstrategy = 5
              and g.amoplefttype = e.opcintype and g.amoprighttype = e.opcintype
            join pg_catalog.pg_operator r on r.oid = g.amopopr and r.oprname = '>'`;

/**
 * An index orders rows as ORDER BY does when it is a B-tree whose operator classes are the default ones, and whose collations are those of
 * the columns.
 */
const ORDER = `
        select (x.indkey::pg_catalog.int2[])[0:x.indnkeyatts - 1] as attnums, x.indclass
        from pg_catalog.pg_index x where x.indrelid = c.oid and x.indisvalid
          and (x.indisprimary or x.indimmediate and x.indisreplident and c.relreplident = 'i')
          and x.indnkeyatts = (
            select pg_catalog.count(distinct d.attnum)
            from pg_catalog.generate_series(0, x.indnkeyatts - 1) p(place)
              join pg_catalog.pg_attribute d on d.attrelid = c.oid and d.attnum = x.indkey[p.place]
              join ${COMPARISON} on e.oid = x.indclass[p.place]
              join pg_catalog.pg_am m on m.oid = e.opcmethod and m.amname = 'btree'
            where e.opcdefault and x.indcollation[p.place] = d.attcollation)
        order by x.indisprimary desc limit 1`;

/** Of a column by which rows are ordered, or found by the replica identity. */
const KEY_COLUMN = `
        with recursive bases(type) as (
          select a.atttypid
          union all
          select d.typbasetype from bases b join pg_catalog.pg_type d on d.oid = b.type and d.typtype = 'd')
        select p.place, pg_catalog.format('%I.%I', h.nspname, d.typname) as quoted_type,
          coalesce(pg_catalog.quote_ident(q.nspname), 'pg_catalog') as operator_schema,
          (select pg_catalog.format('%I.%I', u.nspname, l.collname) from pg_catalog.pg_collation l
            join pg_catalog.pg_namespace u on u.oid = l.collnamespace where l.oid = a.attcollation) as quoted_collation
        from (select pg_catalog.array_position(o.attnums, a.attnum) as place) p
          left join (${COMPARISON} join pg_catalog.pg_namespace q on q.oid = r.oprnamespace)
            on e.oid = coalesce(o.indclass[p.place - 1], i.indclass[pg_catalog.array_position(i.attnums, a.attnum) - 1])
          cross join bases b
          join pg_catalog.pg_type d on d.oid = b.type and d.typtype <> 'd'
          join pg_catalog.pg_namespace h on h.oid = d.typnamespace
        where a.attnum = any (o.attnums) or a.attnum = any (i.attnums)`;
