import { quoteLiteral } from './identifiers.js';
import type { CommandSession, TextRow } from './session.js';

const NAMED_TABLES = 10;

/**
 * Finds what is odd about publications and the tables in them, without losing anything. Reads catalogs alone, so that
 * no lock on a table is waited for.
 *
 * @returns a sentence for each kind of oddity, with the SQL that mends it
 */
export async function advisePublications(
  session: CommandSession,
  publications: readonly string[],
): Promise<string[]> {
  const names = publications.map(quoteLiteral).join(', ');
  const limited = await session.query(limitedPublications(names));
  const odd = await session.query(oddTables(names));
  return [...limited.map(limitedMessage), ...odd.map(oddMessage)];
}

function limitedPublications(names: string): string {
  return `select pg_catalog.quote_ident(p.pubname) as publication, pg_catalog.concat_ws(', ',
      case when not p.pubinsert then 'inserts' end, case when not p.pubupdate then 'updates' end,
      case when not p.pubdelete then 'deletes' end, case when not p.pubtruncate then 'truncates' end) as missing
    from pg_catalog.pg_publication p where p.pubname in (${names})
      and not (p.pubinsert and p.pubupdate and p.pubdelete and p.pubtruncate)
    order by p.pubname`;
}

function limitedMessage(row: TextRow): string {
  const { publication, missing } = row;
  return (
    `publication ${publication} does not publish ${missing}, so the sink never receives them; if it should,` +
    ` run: alter publication ${publication} set (publish = 'insert, update, delete, truncate')`
  );
}

/**
 * Each table of the publications, partitions in place of what they are part of, whose identity cannot be published or
 * whose rows are not in the WAL.
 *
 * @see {@link https://www.postgresql.org/docs/current/logical-replication-publication.html#LOGICAL-REPLICATION-PUBLICATION-REPLICA-IDENTITY | Replica identity}
 */
function oddTables(names: string): string {
  return `with recursive
    pub as (
      select p.oid, p.puballtables, p.pubupdate or p.pubdelete as keyed,
        pg_catalog.to_jsonb(p) ->> 'pubgencols' as generated
      from pg_catalog.pg_publication p where p.pubname in (${names})),
    published(pub, rel, lister) as (
      select p.oid, r.prrelid, r.oid from pub p join pg_catalog.pg_publication_rel r on r.prpubid = p.oid
      union
      select p.oid, c.oid, null from pub p join pg_catalog.pg_publication_namespace n on n.pnpubid = p.oid
        join pg_catalog.pg_class c on c.relnamespace = n.pnnspid and c.relkind in ('r', 'p')
      union
      select p.oid, c.oid, null from pub p join pg_catalog.pg_class c
        on p.puballtables and c.relkind = 'r' and c.oid >= 16384
      union
      select t.pub, i.inhrelid, t.lister
        from published t join pg_catalog.pg_class c on c.oid = t.rel and c.relkind = 'p'
        join pg_catalog.pg_inherits i on i.inhparent = t.rel),
    leaf as (
      select c.oid, c.relnamespace, c.relname, c.relreplident, c.relpersistence, p.keyed, p.generated, r.prrelid,
        r.prattrs, x.indexrelid, x.indkey
      from published t join pub p on p.oid = t.pub
        join pg_catalog.pg_class c on c.oid = t.rel and c.relkind = 'r'
        left join pg_catalog.pg_publication_rel r on r.oid = t.lister
        left join pg_catalog.pg_index x on x.indrelid = c.oid and x.indisvalid and x.indimmediate
          and case c.relreplident when 'd' then x.indisprimary when 'i' then x.indisreplident end),
    odd as (
      select 'no_identity' as kind, oid, relnamespace, relname from leaf
        where keyed and relpersistence = 'p' and relreplident <> 'f' and indexrelid is null
      union
      select case when l.prattrs is null then 'generated_identity' else 'unlisted_identity' end, l.oid, l.relnamespace, l.relname from leaf l
        where l.keyed and l.relpersistence = 'p' and (l.prattrs is not null or l.generated is not null)
        and exists (
          select from pg_catalog.pg_attribute a where a.attrelid = l.oid and a.attnum > 0 and not a.attisdropped
            and (l.relreplident = 'f' or a.attnum = any (l.indkey))
            and not case
              when l.prattrs is null then a.attgenerated = '' or l.generated is null
                or l.generated = 's' and a.attgenerated = 's'
              else l.relreplident <> 'f' and exists (
                select from pg_catalog.pg_attribute b
                where b.attrelid = l.prrelid and b.attnum = any (l.prattrs) and b.attname = a.attname) end)
      union
      select 'unlogged', oid, relnamespace, relname from leaf where relpersistence = 'u'),
    named as (
      select o.kind, pg_catalog.format('%I.%I', n.nspname, o.relname) as name,
        pg_catalog.row_number() over (partition by o.kind order by n.nspname, o.relname) as place
      from odd o join pg_catalog.pg_namespace n on n.oid = o.relnamespace)
    select kind, pg_catalog.count(*)::text as count, pg_catalog.min(name) filter (where place = 1) as first,
      pg_catalog.string_agg(name, ', ' order by place) filter (where place <= ${NAMED_TABLES}) as names
    from named group by kind order by kind`;
}

function oddMessage(row: TextRow): string {
  const { kind, first } = row;
  const tables = enumeration(row);
  switch (kind) {
    case 'no_identity':
      return (
        `published without a replica identity, so the application's UPDATE and DELETE fail: ${tables};` +
        ` add a primary key, or run for each: alter table ${first} replica identity full`
      );
    case 'generated_identity':
      return (
        `published without generated columns of the replica identity, so the application's UPDATE and DELETE fail: ${tables};` +
        ` run for each, where it has a primary key: alter table ${first} replica identity default;` +
        ' or run, for stored ones: alter publication … set (publish_generated_columns = stored)'
      );
    case 'unlisted_identity':
      return (
        `published with a column list that does not cover the replica identity, so the application's UPDATE and DELETE fail: ${tables};` +
        ' run for each: alter publication … set table …, with these columns in the list, or without a list where the identity is full'
      );
    default:
      return (
        `unlogged, so no row of theirs ever comes, though the publication covers them: ${tables};` +
        ` run for each: alter table ${first} set logged`
      );
  }
}

function enumeration({ count, names }: TextRow): string {
  const more = Number(count) - NAMED_TABLES;
  return more > 0 ? `${names} and ${more} more` : `${names}`;
}
