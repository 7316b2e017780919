import type { TableName } from '../model/relation.js';
import { quoteLiteral } from './identifiers.js';
import type { CommandSession } from './session.js';

/**
 * Names the tables whose rows the publications carry, as changes have them: a partition that is published through an ancestor goes by the
 * name of that one. Reads catalogs alone, so that no lock on a table is waited for, which `pg_publication_tables` does.
 *
 * @see {@link https://www.postgresql.org/docs/current/sql-createpublication.html#SQL-CREATEPUBLICATION-PARAMS-WITH-PUBLISH-VIA-PARTITION-ROOT | publish_via_partition_root}
 */
export async function readPublishedNames(
  session: CommandSession,
  publications: readonly string[],
): Promise<readonly TableName[]> {
  const rows = await session.query(
    `with recursive
      pub as (
        select p.oid, p.puballtables, p.pubviaroot from pg_catalog.pg_publication p
        where p.pubname in (${publications.map(quoteLiteral).join(', ')})),
      listed(rel, viaroot) as (
        select r.prrelid, p.pubviaroot from pub p join pg_catalog.pg_publication_rel r on r.prpubid = p.oid
        union
        select c.oid, p.pubviaroot from pub p join pg_catalog.pg_publication_namespace n on n.pnpubid = p.oid
          join pg_catalog.pg_class c on c.relnamespace = n.pnnspid and c.relkind in ('r', 'p')
        union
        select c.oid, p.pubviaroot from pub p join pg_catalog.pg_class c
          on p.puballtables and c.relkind in ('r', 'p') and c.oid >= 16384),
      part(rel, name, height) as (
        select l.rel, case when l.viaroot then l.rel end, 0 from listed l
        union
        select i.inhrelid, p.name, p.height + 1
          from part p join pg_catalog.pg_class c on c.oid = p.rel and c.relkind = 'p'
          join pg_catalog.pg_inherits i on i.inhparent = p.rel),
      carried as (
        select distinct on (p.rel) coalesce(p.name, p.rel) as rel
        from part p join pg_catalog.pg_class c on c.oid = p.rel and c.relkind = 'r' and c.relpersistence = 'p'
        order by p.rel, p.name is null, p.height desc)
    select distinct n.nspname as schema, c.relname as table
    from carried t join pg_catalog.pg_class c on c.oid = t.rel
      join pg_catalog.pg_namespace n on n.oid = c.relnamespace`,
  );
  return rows.map(({ schema, table }) => ({
    schema: schema ?? '',
    table: table ?? '',
  }));
}
