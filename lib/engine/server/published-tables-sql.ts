import { quoteLiteral } from './identifiers.js';

/**
 * Asks for the tables that a stream of publications carries, in the order of their names: a row for each published column
 * in the order of the table, or one row for a table without any. It wants an empty search_path.
 */
export function publishedTablesSql(publications: readonly string[]): string {
  const names = publications.map(quoteLiteral).join(', ');
  return `with recursive ${tables(names)},
    ${LEAVES},
    ${KEYS}
    select c.oid, n.nspname as schema, c.relname as table, pg_catalog.format('%I.%I', n.nspname, c.relname) as quoted_name,
      c.relkind = 'p' as partitioned, c.relreplident as identity, t.agreed, t.publications,
      case when s.not_streamed is null then t.row_filter
        else pg_catalog.concat_ws(' and ', '(' || t.row_filter || ')', 'tableoid <> all (' ||
          pg_catalog.quote_literal(s.not_streamed::pg_catalog.text) || '::pg_catalog.oid[])') end as row_filter,
      s.rows, case when s.rows > 0 then pg_catalog.ceil(s.bytes / s.rows) end as row_bytes,
      a.attname as column, pg_catalog.quote_ident(a.attname) as quoted_column, a.atttypid as type, a.atttypmod as modifier,
      c.relreplident = 'f' or i.attnum is not null as key,
      o.columns as order_columns, o.place, y.quoted_type, y.operator_schema, y.quoted_collation
    from tables t
      join pg_catalog.pg_class c on c.oid = t.oid
      join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      left join sizes s on s.root = c.oid
      left join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum = any (t.attnums)
      left join (select distinct indrelid, attnum from keys where identity) i on i.indrelid = c.oid and i.attnum = a.attnum
      left join ordered o on o.indrelid = c.oid and o.attnum = a.attnum
      left join typed y on y.indrelid = c.oid and y.attnum = a.attnum
    order by n.nspname, c.relname, a.attnum`;
}

/**
 * A partition whose ancestor is carried is streamed under the name of that ancestor, and the publications that carry the partition itself
 * have no say; a publication lists a partitioned table only when it publishes through it. Unlogged and foreign tables, which it may list
 * as partitions, are not in the WAL. PostgreSQL 15 lists generated columns too; no release before 18 streams one.
 */
function tables(names: string): string {
  return `listed as materialized (
      select p.pubname, p.attnames, p.rowfilter, c.oid, c.relispartition
      from pg_catalog.pg_publication_tables p
        join pg_catalog.pg_namespace n on n.nspname = p.schemaname
        join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = p.tablename
      where p.pubname in (${names}) and c.relkind in ('r', 'p') and c.relpersistence = 'p'),
    published as (
      select l.* from listed l
      where not l.relispartition or l.oid not in (
        select r.oid from (select distinct oid from listed where relispartition) r
          cross join lateral pg_catalog.pg_partition_ancestors(r.oid) a(oid)
          join listed e on e.oid = a.oid and e.oid <> r.oid)),
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

/** Where the rows are: a table itself, or the leaves of a partitioned one. Asking for a size waits for whoever has locked the table. */
const LEAVES = `leaves as (
      select t.oid as root, t.oid from tables t
      union all
      select l.root, i.inhrelid from leaves l
        join pg_catalog.pg_class c on c.oid = l.oid and c.relkind = 'p'
        join pg_catalog.pg_inherits i on i.inhparent = l.oid),
    locked as materialized (
      select l.relation from pg_catalog.pg_locks l join pg_catalog.pg_database d on d.oid = l.database
      where d.datname = pg_catalog.current_database() and l.mode = 'AccessExclusiveLock' and l.relation is not null),
    measured as materialized (
      select l.root, l.oid, c.relkind = 'r' and c.relpersistence = 'p' as streamed, c.reltuples,
        case when c.relkind = 'r' and l.oid not in (select relation from locked)
          then pg_catalog.pg_table_size(l.oid) end as bytes,
        c.reltuples < 0 and c.relkind = 'r' and l.oid not in (select relation from locked)
          and pg_catalog.pg_relation_size(l.oid) = 0 as empty
      from leaves l join pg_catalog.pg_class c on c.oid = l.oid and c.relkind <> 'p'),
    sizes as (
      select m.root,
        case when pg_catalog.bool_and(m.empty or m.reltuples >= 0) filter (where m.streamed)
          then pg_catalog.sum(greatest(m.reltuples, 0)::pg_catalog.float8) filter (where m.streamed) end as rows,
        case when pg_catalog.bool_and(m.bytes is not null) filter (where m.streamed)
          then (pg_catalog.sum(m.bytes) filter (where m.streamed))::pg_catalog.float8 end as bytes,
        pg_catalog.array_agg(m.oid order by m.oid) filter (where not m.streamed) as not_streamed
      from measured m group by m.root)`;

/**
 * An index has columns beside its key (INCLUDE). It orders rows as ORDER BY does when it is a B-tree whose operator classes are the default
 * ones and whose collations are those of the columns. A deferrable primary key is no replica identity.
 */
const KEYS = `keys as materialized (
      select x.indrelid, x.indexrelid, x.indisprimary, k.attnum, k.place, a.atttypid, a.attcollation, n.nspname as operator_schema,
        m.amname = 'btree' and c.opcdefault and o.oprname = '>'
          and x.indcollation[k.place - 1] = a.attcollation as ordering,
        x.indimmediate and case r.relreplident when 'd' then x.indisprimary when 'i' then x.indisreplident else false end as identity
      from tables t
        join pg_catalog.pg_class r on r.oid = t.oid
        join pg_catalog.pg_index x on x.indrelid = t.oid and (x.indisprimary or x.indisreplident) and x.indisvalid
        cross join lateral pg_catalog.unnest(x.indkey::pg_catalog.int2[]) with ordinality k(attnum, place)
        join pg_catalog.pg_attribute a on a.attrelid = t.oid and a.attnum = k.attnum
        join pg_catalog.pg_opclass c on c.oid = x.indclass[k.place - 1]
        join pg_catalog.pg_am m on m.oid = c.opcmethod
        left join pg_catalog.pg_amop g on g.amopfamily = c.opcfamily and g.amopstrategy = 5
          and g.amoplefttype = c.opcintype and g.amoprighttype = c.opcintype
        left join pg_catalog.pg_operator o on o.oid = g.amopopr
        left join pg_catalog.pg_namespace n on n.oid = o.oprnamespace
      where k.place <= x.indnkeyatts),
    chosen as (
      select distinct on (indrelid) indexrelid from (
        select indrelid, indexrelid, indisprimary from keys
        group by indrelid, indexrelid, indisprimary
        having pg_catalog.bool_and(ordering is true) and (indisprimary or pg_catalog.bool_and(identity))) usable
      order by indrelid, indisprimary desc),
    bases(domain, type) as (
      select distinct atttypid, atttypid from keys
      union
      select b.domain, t.typbasetype from bases b join pg_catalog.pg_type t on t.oid = b.type and t.typtype = 'd'),
    ordered as materialized (
      select distinct on (k.indrelid, k.attnum) k.indrelid, k.attnum, k.place,
        pg_catalog.count(*) over (partition by k.indrelid) as columns
      from chosen c join keys k on k.indexrelid = c.indexrelid
      order by k.indrelid, k.attnum, k.place),
    typed as materialized (
      select distinct on (k.indrelid, k.attnum) k.indrelid, k.attnum,
        pg_catalog.format('%I.%I', n.nspname, t.typname) as quoted_type, coalesce(pg_catalog.quote_ident(k.operator_schema), 'pg_catalog') as operator_schema,
        (select pg_catalog.format('%I.%I', s.nspname, l.collname) from pg_catalog.pg_collation l
          join pg_catalog.pg_namespace s on s.oid = l.collnamespace where l.oid = k.attcollation) as quoted_collation
      from keys k
        join bases b on b.domain = k.atttypid
        join pg_catalog.pg_type t on t.oid = b.type and t.typtype <> 'd'
        join pg_catalog.pg_namespace n on n.oid = t.typnamespace
      order by k.indrelid, k.attnum, k.ordering desc nulls last)`;
