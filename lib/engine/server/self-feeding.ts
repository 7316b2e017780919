import type { CheckpointHome } from '../model/checkpoint.js';
import { HaltError } from '../model/halt.js';
import { quoteLiteral } from './identifiers.js';
import type { CommandSession } from './session.js';

/**
 * Makes sure that no publication carries the table in which the checkpoint is stored: each transaction would write
 * the checkpoint, and each checkpoint would be a transaction. Reads catalogs alone, so that no lock on a table is
 * waited for.
 *
 * @throws {HaltError} `preflight/self_feeding`
 */
export async function refuseSelfFeeding(
  session: CommandSession,
  publications: readonly string[],
  home: CheckpointHome,
): Promise<void> {
  const rows = await session.query(carriers(publications, home.relationOid));
  const row = rows[0];
  if (row === undefined) return;
  throw new HaltError('preflight/self_feeding', {
    detail: `publication ${row['publication']} carries the checkpoint table ${home.quotedName}; ${row['mend']}`,
  });
}

/** A partition is published with the table that it is part of, and a partitioned table by its partitions. */
function carriers(
  publications: readonly string[],
  relationOid: number,
): string {
  return `with recursive
    above(oid) as (
      select ${relationOid}::pg_catalog.oid
      union select i.inhparent from above join pg_catalog.pg_inherits i on i.inhrelid = above.oid
        join pg_catalog.pg_class c on c.oid = above.oid and c.relispartition),
    below(oid) as (
      select ${relationOid}::pg_catalog.oid
      union select i.inhrelid from below join pg_catalog.pg_inherits i on i.inhparent = below.oid
        join pg_catalog.pg_class c on c.oid = i.inhrelid and c.relispartition),
    family as (
      select c.oid, c.relname, n.oid as schema, n.nspname, c.relpersistence
      from (select oid from above union select oid from below) f
        join pg_catalog.pg_class c on c.oid = f.oid join pg_catalog.pg_namespace n on n.oid = c.relnamespace),
    publication as (
      select oid, pubname, puballtables from pg_catalog.pg_publication
      where pubname in (${publications.map(quoteLiteral).join(', ')}))
    select pg_catalog.quote_ident(pubname) as publication, mend from (
      select 1 as rank, p.pubname,
        pg_catalog.format('run: alter publication %I drop table %I.%I', p.pubname, f.nspname, f.relname) as mend
      from publication p join pg_catalog.pg_publication_rel r on r.prpubid = p.oid join family f on f.oid = r.prrelid
      union all
      select 2, p.pubname,
        pg_catalog.format('publish its tables by name, and run: alter publication %I drop tables in schema %I',
          p.pubname, f.nspname)
      from publication p join pg_catalog.pg_publication_namespace n on n.pnpubid = p.oid
        join family f on f.schema = n.pnnspid where f.relpersistence = 'p'
      union all
      select 3, p.pubname,
        pg_catalog.format('run, with the tables that are meant: begin; drop publication %1$I; create publication %1$I for table …; commit',
          p.pubname)
      from publication p join family f on f.relpersistence = 'p' where p.puballtables) m
    order by rank, pubname limit 1`;
}
