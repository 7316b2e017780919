import type { CheckpointHome } from '../../model/checkpoint.js';
import { HaltError } from '../../model/halt.js';
import type { HaltCode } from '../../model/halts.js';
import type { CatalogTable, TableName } from '../../model/relation.js';
import type { ResolvedDecoder } from '../../options/decoder-options.js';
import { readCatalogTables } from '../catalog-tables.js';
import { quoteLiteral } from '../identifiers.js';
import { IDENTITY } from '../published-tables-sql.js';
import type { CommandSession, TextRow } from '../session.js';
import { adviseAsked } from './asked-tables.js';
import type { CaptureSet, Notice } from './capture-set.js';
import { requirePlugin } from './plugin-checks.js';

/** In the words of the plugin. */
const ASKED: Readonly<Record<string, string>> = {
  'format-version': '2',
  'include-transaction': 'true',
  'include-lsn': 'true',
  'include-xids': 'true',
  'include-timestamp': 'true',
  'include-types': 'true',
  'include-type-oids': 'true',
  'include-pk': 'true',
  'numeric-data-types-as-string': 'true',
};

/** Its parser knows blanks, commas, dots and `*`; before anything else a backslash changes nothing. */
const SPECIAL = /[^A-Za-z0-9_]/gu;

/** Tables by name, by `wal2json`. */
export class NamedTables implements CaptureSet {
  readonly plugin = 'wal2json';
  readonly publications: readonly string[] = [];
  readonly schemaCheckInterval: number;
  readonly startOptions: readonly string[];
  readonly #tables: readonly TableName[];
  readonly #allowKeyless: boolean;

  constructor({
    tables,
    allowKeylessTables,
    schemaCheckInterval,
  }: Extract<ResolvedDecoder, { name: 'wal2json' }>) {
    this.schemaCheckInterval = schemaCheckInterval;
    this.#tables = tables.map(([schema, table]) => ({ schema, table }));
    this.#allowKeyless = allowKeylessTables;
    const listed = this.#tables.map(
      ({ schema, table }) => `${escaped(schema)}.${escaped(table)}`,
    );
    const asked = { ...ASKED, 'add-tables': listed.join(',') };
    this.startOptions = Object.entries(asked).map(
      ([name, value]) => `"${name}" ${quoteLiteral(value)}`,
    );
  }

  async check(session: CommandSession): Promise<void> {
    await requirePlugin(session, this.plugin);
    const odd = await session.query(this.#oddSql);
    const missing = odd.filter(({ oddity }) => oddity !== 'keyless');
    if (missing.length > 0)
      throw new HaltError('decoder/table_missing', {
        detail: missing
          .map(({ name, oddity }) => `${name} ${oddity}`)
          .join('; '),
      });
    if (odd.length > 0 && !this.#allowKeyless)
      throw new HaltError('decoder/table_keyless', {
        detail: odd
          .map(({ name }) => `${name} has no replica identity`)
          .join('; '),
      });
  }

  async refuseSelfFeeding(
    session: CommandSession,
    { relationOid, quotedName }: CheckpointHome,
  ): Promise<void> {
    const rows = await session.query(
      `${this.#namedSql} select from named where oid = ${relationOid}`,
    );
    if (rows.length > 0)
      throw new HaltError('preflight/self_feeding', {
        detail: `the option tables has the checkpoint table ${quotedName}; remove it there`,
      });
  }

  async advise(
    _session: CommandSession,
    asked: readonly string[],
  ): Promise<string[]> {
    const captured = this.#tables.map(
      ({ schema, table }) => `${schema}.${table}`,
    );
    return adviseAsked(asked, captured, 'add the table to the option tables');
  }

  refusal(sqlstate: string): HaltCode | null {
    switch (sqlstate) {
      case '58P01': // undefined_file
        return 'decoder/plugin_missing';
      case '22023': // invalid_parameter_value
      case '0A000': // feature_not_supported
        return 'decoder/option_unsupported';
      default:
        return null;
    }
  }

  /** It warns of each update and delete that it leaves out, and names the table in a text of the server's language. */
  noticed({ code, file }: Notice): HaltError | null {
    return code === '01000' && file === 'wal2json.c' && !this.#allowKeyless
      ? new HaltError('decoder/table_keyless', {
          detail:
            'wal2json has left out an update or delete of a table that had no replica identity at this point of the WAL',
        })
      : null;
  }

  get tablesSql(): string {
    return `named as (select * from (${this.#namedSql} select * from named) n where oid is not null),
    tables as materialized (
      select c.oid, coalesce(pg_catalog.array_agg(a.attnum order by a.attnum) filter (where a.attnum is not null), '{}') as attnums,
        true as agreed, null::pg_catalog.text as publications, null::pg_catalog.text as row_filter
      from named c left join pg_catalog.pg_attribute a
        on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
      where c.relkind = 'r' and c.relpersistence = 'p'
      group by c.oid)`;
  }

  async names(): Promise<readonly TableName[]> {
    return this.#tables;
  }

  catalog(session: CommandSession): Promise<readonly CatalogTable[]> {
    return readCatalogTables(session, this.#tables);
  }

  state(session: CommandSession): Promise<readonly TextRow[]> {
    return session.query(
      `${this.#namedSql} select schema, name, oid from named order by schema, name`,
    );
  }

  /** Which table has a name is part of the state. */
  async hasLostTables(): Promise<boolean> {
    return false;
  }

  get #namedSql(): string {
    const wanted = this.#tables
      .map(
        ({ schema, table }) =>
          `(${quoteLiteral(schema)}, ${quoteLiteral(table)})`,
      )
      .join(', ');
    return `with named as (
      select w.schema, w.name, c.oid, c.relkind, c.relpersistence, c.relreplident
      from (values ${wanted}) w(schema, name)
        left join pg_catalog.pg_namespace n on n.nspname = w.schema
        left join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = w.name)`;
  }

  get #oddSql(): string {
    return `${this.#namedSql}
      select name, oddity from (
        select pg_catalog.format('%I.%I', c.schema, c.name) as name,
          case when c.oid is null then 'does not exist'
            when c.relkind = 'p' then 'is partitioned, and the plugin sends its partitions: name these instead'
            when c.relkind <> 'r' then 'is no table'
            when c.relpersistence <> 'p' then 'is not in the WAL, because it is unlogged or temporary'
            when c.relreplident <> 'f' and i.attnums is null then 'keyless' end as oddity
        from named c left join lateral (${IDENTITY}) i on true) o
      where oddity is not null order by oddity = 'keyless', name`;
  }
}

function escaped(name: string): string {
  return name.replaceAll(SPECIAL, String.raw`\$&`);
}
