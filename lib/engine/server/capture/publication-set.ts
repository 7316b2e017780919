import type { CheckpointHome } from '../../model/checkpoint.js';
import { HaltError } from '../../model/halt.js';
import type { CatalogTable, TableName } from '../../model/relation.js';
import type { ResolvedOptions } from '../../options/resolve-options.js';
import { requireAgreeingColumnLists } from '../column-lists.js';
import { publicationNamesLiteral } from '../identifiers.js';
import { advisePublications } from '../publication-advice.js';
import { requirePublications } from '../publications.js';
import { readPublishedNames } from '../published-names.js';
import { tablesOfPublicationsSql } from '../published-tables-sql.js';
import { refuseSelfFeeding } from '../self-feeding.js';
import type { CommandSession, TextRow } from '../session.js';
import { adviseTables } from '../table-advice.js';
import type { CaptureSet, Notice } from './capture-set.js';

/** Version of the protocol, of PostgreSQL 14. */
const FIRST_WITH_STREAMING = 2;

/** What the publications in `$1` are, and what was added to them by name. */
const STATE = `
  select p.pubname, pg_catalog.to_jsonb(p) as publication,
    (select pg_catalog.jsonb_agg(pg_catalog.to_jsonb(r) order by r.oid)
       from pg_catalog.pg_publication_rel r where r.prpubid = p.oid) as tables,
    (select pg_catalog.jsonb_agg(pg_catalog.to_jsonb(n) order by n.oid)
       from pg_catalog.pg_publication_namespace n where n.pnpubid = p.oid) as schemas
  from pg_catalog.pg_publication p
  where p.pubname = any (cast($1 as pg_catalog.text[]))
  order by p.pubname`;

/**
 * Tables of publications of all tables, or of all tables of a schema, that are in the snapshot and are gone: the function asks for the
 * present, and knows nothing of them.
 */
const DROPPED = `
  select from pg_catalog.pg_class c
  where c.relkind in ('r', 'p') and c.relpersistence = 'p' and pg_catalog.pg_table_is_visible(c.oid) is null
    and exists (
      select from pg_catalog.pg_publication p
        left join pg_catalog.pg_publication_namespace n on n.pnpubid = p.oid
      where p.pubname = any (cast($1 as pg_catalog.text[])) and (p.puballtables or n.pnnspid = c.relnamespace))
  limit 1`;

/** The union of publications, by `pgoutput`. */
export class PublicationSet implements CaptureSet {
  readonly plugin = 'pgoutput';
  readonly schemaCheckInterval = null;
  readonly startOptions: readonly string[];

  constructor(
    readonly publications: readonly string[],
    { messages, streaming }: Pick<ResolvedOptions, 'messages' | 'streaming'> = {
      messages: false,
      streaming: null,
    },
  ) {
    this.startOptions = [
      `proto_version '${streaming === null ? 1 : FIRST_WITH_STREAMING}'`,
      `publication_names ${publicationNamesLiteral(publications)}`,
      ...(messages ? [`messages 'true'`] : []),
      ...(streaming === null ? [] : [`streaming 'on'`]),
    ];
  }

  async check(session: CommandSession): Promise<void> {
    await requirePublications(session, this.publications);
    await requireAgreeingColumnLists(session, this.publications);
  }

  refuseSelfFeeding(
    session: CommandSession,
    home: CheckpointHome,
  ): Promise<void> {
    return refuseSelfFeeding(session, this.publications, home);
  }

  async advise(
    session: CommandSession,
    asked: readonly string[],
  ): Promise<string[]> {
    return [
      ...(await advisePublications(session, this.publications)),
      ...(await adviseTables(session, this.publications, asked)),
    ];
  }

  refusal(): null {
    return null;
  }

  /**
   * PostgreSQL 18 warns that it passes over a publication that is missing. The SQLSTATE is that of others too, such as that of a slot which
   * waits for a standby; text and severity are in the language of the server. So the file tells, and where that is missing, it is taken for
   * the worse.
   */
  noticed({ code, file }: Notice): HaltError | null {
    return code === '55000' && (file === 'pgoutput.c' || file === '')
      ? new HaltError('publication/missing', {
          detail: 'a publication does not exist at this point of the WAL',
        })
      : null;
  }

  get tablesSql(): string {
    return tablesOfPublicationsSql(this.publications);
  }

  names(session: CommandSession): Promise<readonly TableName[]> {
    return readPublishedNames(session, this.publications);
  }

  async catalog(): Promise<readonly CatalogTable[]> {
    return [];
  }

  state(session: CommandSession): Promise<readonly TextRow[]> {
    return session.query(STATE, [this.publications]);
  }

  async hasLostTables(session: CommandSession): Promise<boolean> {
    const rows = await session.query(DROPPED, [this.publications]);
    return rows.length > 0;
  }
}
