import type { CaptureSet } from './capture/capture-set.js';
import { HaltError } from '../model/halt.js';
import type { ReplicaIdentity } from '../model/relation.js';
import type {
  KeyColumn,
  PublishedColumn,
  PublishedTable,
} from './published-table.js';
import { capturedTablesSql } from './published-tables-sql.js';
import type { CommandSession, TextRow } from './session.js';

/** One table while its rows are taken in, a row for each of its columns. */
interface TableBuild {
  readonly table: Omit<PublishedTable, 'columns' | 'orderKey' | 'identityKey'>;
  readonly columns: PublishedColumn[];
  /** The published columns of the key, by their places in it. */
  readonly orderKey: Map<number, KeyColumn>;
  /** Published columns of this key and others, by their names. */
  readonly keyColumns: Map<string, KeyColumn>;
  /** All columns of the key. */
  orderColumns: number;
}

/**
 * Reads what a stream carries: which tables, under which names, with which rows and columns. Reads
 * catalogs alone, and asks for the size of tables on which nobody holds or awaits an exclusive lock. Afterwards the
 * session has an empty search_path, by which row filters are written.
 *
 * A filter of any publication counts for whatever it publishes, as it does when PostgreSQL itself copies tables.
 *
 * @throws {HaltError} `publication/column_lists` for a table of which publications publish different columns
 * @see {@link https://www.postgresql.org/docs/current/view-pg-publication-tables.html | pg_publication_tables}
 * @see {@link https://www.postgresql.org/docs/current/logical-replication-row-filter.html#LOGICAL-REPLICATION-ROW-FILTER-INITIAL-DATA-SYNC | Initial data synchronization}
 */
export async function readPublishedTables(
  session: CommandSession,
  { tablesSql }: Pick<CaptureSet, 'tablesSql'>,
): Promise<readonly PublishedTable[]> {
  await session.query("select pg_catalog.set_config('search_path', '', false)");
  // The view opens each table, and waits for whoever alters one.
  const rows = await session.queryPatiently(capturedTablesSql(tablesSql));
  const builds = new Map<string, TableBuild>();
  for (const row of rows) {
    const oid = row['oid'] ?? '';
    let build = builds.get(oid);
    if (build === undefined) {
      requireAgreement(row);
      build = begun(row);
      builds.set(oid, build);
    }
    addColumn(build, row);
  }
  return [...builds.values()].map(finished);
}

/** The server refuses to decode changes of a table on whose columns the publications differ. */
function requireAgreement({
  agreed,
  publications,
  quoted_name,
}: TextRow): void {
  if (agreed === 't') return;
  throw new HaltError('publication/column_lists', {
    detail: `${publications} publish different columns of ${quoted_name}`,
  });
}

function begun(row: TextRow): TableBuild {
  const schema = row['schema'] ?? '';
  const table = row['table'] ?? '';
  return {
    table: {
      oid: Number(row['oid']),
      schema,
      table,
      name: `${schema}.${table}`,
      quotedName: row['quoted_name'] ?? '',
      partitioned: row['partitioned'] === 't',
      replicaIdentity: replicaIdentity(row['identity']),
      rowFilter: row['row_filter'] ?? null,
      estimatedRows: estimate(row['rows']),
      estimatedRowBytes: estimate(row['row_bytes']),
    },
    columns: [],
    orderKey: new Map(),
    keyColumns: new Map(),
    orderColumns: 0,
  };
}

/** A table without columns has one row all the same, without a column. */
function addColumn(build: TableBuild, row: TextRow): void {
  const { column: name, quoted_column: quotedName } = row;
  if (typeof name !== 'string' || typeof quotedName !== 'string') return;
  build.columns.push({
    name,
    quotedName,
    typeOid: Number(row['type']),
    typeModifier: Number(row['modifier']),
    key: row['key'] === 't',
  });
  const { place, quoted_type: quotedType, operator_schema: schema } = row;
  if (typeof quotedType !== 'string' || typeof schema !== 'string') return;
  const column = {
    name,
    quotedName,
    quotedType,
    operatorSchema: schema,
    quotedCollation: row['quoted_collation'] ?? null,
  };
  build.keyColumns.set(name, column);
  if (typeof place !== 'string') return;
  build.orderColumns = Number(row['order_columns']);
  build.orderKey.set(Number(place), column);
}

function finished(build: TableBuild): PublishedTable {
  const { table, columns, orderKey, orderColumns } = build;
  const complete = orderColumns > 0 && orderKey.size === orderColumns;
  return {
    ...table,
    columns,
    orderKey: complete
      ? [...orderKey].toSorted(([a], [b]) => a - b).map(([, column]) => column)
      : null,
    identityKey: identityKey(build),
  };
}

function identityKey({
  table,
  columns,
  keyColumns,
}: TableBuild): readonly KeyColumn[] | null {
  if (table.replicaIdentity === 'full') return null;
  const identity = columns.filter(({ key }) => key);
  const known = identity.flatMap(({ name }) => keyColumns.get(name) ?? []);
  return known.length > 0 && known.length === identity.length ? known : null;
}

function estimate(value: string | null | undefined): number | null {
  return typeof value === 'string' ? Number(value) : null;
}

function replicaIdentity(letter: string | null | undefined): ReplicaIdentity {
  switch (letter) {
    case 'f':
      return 'full';
    case 'i':
      return 'index';
    case 'n':
      return 'nothing';
    default:
      return 'default';
  }
}
