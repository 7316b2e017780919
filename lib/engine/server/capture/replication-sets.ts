import type { CheckpointHome } from '../../model/checkpoint.js';
import { HaltError } from '../../model/halt.js';
import type { HaltCode } from '../../model/halts.js';
import type { CatalogTable, TableName } from '../../model/relation.js';
import { readCatalogTables } from '../catalog-tables.js';
import { quoteIdentifier, quoteLiteral } from '../identifiers.js';
import type { CommandSession, TextRow } from '../session.js';
import { adviseAsked } from './asked-tables.js';
import type { CaptureSet } from './capture-set.js';
import { requirePlugin } from './plugin-checks.js';

/** The union of replication sets, by `pglogical_output`. */
export class ReplicationSets implements CaptureSet {
  readonly plugin = 'pglogical_output';
  readonly publications: readonly string[] = [];
  readonly schemaCheckInterval = null;
  readonly startOptions: readonly string[];
  readonly #list: string;

  constructor(private readonly sets: readonly string[]) {
    this.#list = sets.map(quoteLiteral).join(', ');
    const quoted = sets.map((name) => `"${name.replaceAll('"', '""')}"`);
    this.startOptions = [
      "startup_params_format '1'",
      "min_proto_version '1'",
      "max_proto_version '1'",
      "expected_encoding 'UTF8'",
      // Otherwise it leaves out what another server began.
      `"pglogical.forward_origins" 'all'`,
      `"pglogical.replication_set_names" ${quoteLiteral(quoted.join(','))}`,
    ];
  }

  async check(session: CommandSession): Promise<void> {
    await requirePlugin(session, this.plugin);
    const [extension] = await session.query(
      "select installed_version as version from pg_catalog.pg_available_extensions where name = 'pglogical'",
    );
    if (extension === undefined)
      throw new HaltError('decoder/plugin_missing', {
        detail: 'the server has no extension pglogical to create',
      });
    if (extension['version'] === null)
      throw new HaltError('decoder/replication_set_missing', {
        detail: 'the database has no extension pglogical',
      });
    const rows = await session.query(
      `select set_name from pglogical.replication_set where set_name in (${this.#list})`,
    );
    const found = new Set(rows.map(({ set_name: name }) => name));
    const missing = this.sets.filter((name) => !found.has(name));
    if (missing.length > 0)
      throw new HaltError('decoder/replication_set_missing', {
        detail: `no replication set ${missing.map((name) => quoteIdentifier(name, 'replicationSets')).join(', ')}`,
      });
  }

  async refuseSelfFeeding(
    session: CommandSession,
    { relationOid, quotedName }: CheckpointHome,
  ): Promise<void> {
    const rows = await session.query(
      `${this.#listedSql} select pg_catalog.quote_ident(set_name) as set from listed where oid = ${relationOid} order by 1`,
    );
    const [row] = rows;
    if (row !== undefined)
      throw new HaltError('preflight/self_feeding', {
        detail: `the replication set ${row['set']} has the checkpoint table ${quotedName}; remove it there by pglogical.replication_set_remove_table`,
      });
  }

  async advise(
    session: CommandSession,
    asked: readonly string[],
  ): Promise<string[]> {
    const limited = await session.query(
      `select pg_catalog.quote_ident(set_name) as set, pg_catalog.concat_ws(', ', case when not replicate_insert then 'inserts' end,
          case when not replicate_update then 'updates' end, case when not replicate_delete then 'deletes' end,
          case when not replicate_truncate then 'truncates' end) as missing
        from pglogical.replication_set where set_name in (${this.#list})
          and not (replicate_insert and replicate_update and replicate_delete and replicate_truncate) order by 1`,
    );
    const captured = await this.names(session);
    return [
      ...limited.map(
        ({ set, missing }) =>
          `the replication set ${set} does not have ${missing}, so the sink never receives them; if it should, use pglogical.alter_replication_set`,
      ),
      ...adviseAsked(
        asked,
        captured.map(({ schema, table }) => `${schema}.${table}`),
        'add the table by pglogical.replication_set_add_table',
      ),
    ];
  }

  refusal(sqlstate: string): HaltCode | null {
    switch (sqlstate) {
      case '58P01': // undefined_file
        return 'decoder/plugin_missing';
      case '22023': // invalid_parameter_value: no such set
      case '55000': // object_not_in_prerequisite_state: no node
        return 'decoder/replication_set_missing';
      case '0A000': // feature_not_supported
        return 'decoder/protocol_unsupported';
      default:
        return null;
    }
  }

  noticed(): null {
    return null;
  }

  /** A row has to meet the filters of all sets; columns are those that any set lists. */
  get tablesSql(): string {
    return `listed as materialized (select * from (${this.#listedSql} select * from listed) l),
    carried as (
      select l.oid, pg_catalog.string_agg(pg_catalog.quote_ident(l.set_name), ', ' order by l.set_name) as publications,
        pg_catalog.string_agg(distinct '(' || l.row_filter || ')', ' and ') as row_filter,
        (select pg_catalog.array_agg(n.name) from listed o, pg_catalog.unnest(o.columns) n(name) where o.oid = l.oid) as columns
      from listed l group by l.oid),
    tables as materialized (
      select c.oid, coalesce(pg_catalog.array_agg(a.attnum order by a.attnum) filter (where a.attnum is not null), '{}') as attnums,
        true as agreed, c.publications, c.row_filter
      from carried c left join pg_catalog.pg_attribute a
        on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
          and (c.columns is null or a.attname = any (c.columns))
      group by c.oid, c.publications, c.row_filter)`;
  }

  async names(session: CommandSession): Promise<readonly TableName[]> {
    const rows = await session.query(
      `${this.#listedSql} select distinct n.nspname as schema, c.relname as table
        from listed l join pg_catalog.pg_class c on c.oid = l.oid join pg_catalog.pg_namespace n on n.oid = c.relnamespace`,
    );
    return rows.map(({ schema, table }) => ({
      schema: schema ?? '',
      table: table ?? '',
    }));
  }

  async catalog(session: CommandSession): Promise<readonly CatalogTable[]> {
    return readCatalogTables(session, await this.names(session));
  }

  state(session: CommandSession): Promise<readonly TextRow[]> {
    return session.query(
      `${this.#listedSql} select * from listed order by oid, set_name`,
    );
  }

  /** A table that is dropped leaves its sets. */
  async hasLostTables(): Promise<boolean> {
    return false;
  }

  get #listedSql(): string {
    return `with listed as (
      select t.set_reloid::pg_catalog.oid as oid, s.set_name, t.set_att_list as columns,
        pg_catalog.pg_get_expr(t.set_row_filter, t.set_reloid) as row_filter
      from pglogical.replication_set s join pglogical.replication_set_table t on t.set_id = s.set_id
      where s.set_name in (${this.#list}))`;
  }
}
