import type { CatalogTable, TableName } from '../model/relation.js';
import { quoteLiteral } from './identifiers.js';
import { replicaIdentityOf } from './published-tables.js';
import { IDENTITY } from './published-tables-sql.js';
import type { CommandSession, TextRow } from './session.js';

/**
 * Reads how the catalog describes tables, for a plugin that does not. Names that no table has are absent from the answer. Reads catalogs alone,
 * so that no lock on a table is waited for.
 */
export async function readCatalogTables(
  session: CommandSession,
  names: readonly TableName[],
): Promise<readonly CatalogTable[]> {
  if (names.length === 0) return [];
  const tables = new Map<string, Build>();
  for (const row of await session.query(columnsSql(names))) {
    const oid = row['oid'] ?? '';
    const build = tables.get(oid) ?? begun(row);
    tables.set(oid, build);
    addColumn(build, row);
  }
  return [...tables.values()].map(({ table, columns, generated }) => ({
    ...table,
    columns,
    generated,
  }));
}

interface Build {
  readonly table: Omit<CatalogTable, 'columns' | 'generated'>;
  readonly columns: CatalogTable['columns'][number][];
  readonly generated: string[];
}

function columnsSql(names: readonly TableName[]): string {
  const wanted = names
    .map(
      ({ schema, table }) =>
        `(${quoteLiteral(schema)}, ${quoteLiteral(table)})`,
    )
    .join(', ');
  return `select c.oid, n.nspname as schema, c.relname as table, c.relreplident as identity,
      a.attname as column, a.atttypid as type, a.atttypmod as modifier, a.attgenerated <> '' as generated,
      c.relreplident = 'f' or coalesce(a.attnum = any (i.attnums), false) as key
    from (values ${wanted}) w(schema, name)
      join pg_catalog.pg_namespace n on n.nspname = w.schema
      join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = w.name and c.relkind in ('r', 'p')
      left join lateral (${IDENTITY}) i on true
      left join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    order by n.nspname, c.relname, a.attnum`;
}

function begun(row: TextRow): Build {
  return {
    table: {
      oid: Number(row['oid']),
      schema: row['schema'] ?? '',
      table: row['table'] ?? '',
      replicaIdentity: replicaIdentityOf(row['identity']),
    },
    columns: [],
    generated: [],
  };
}

/** A table without columns has one row all the same, without a column. */
function addColumn({ columns, generated }: Build, row: TextRow): void {
  const { column: name } = row;
  if (typeof name !== 'string') return;
  // The server streams a generated column through publications that say so, and other plugins nobody asks for them.
  if (row['generated'] === 't') generated.push(name);
  else
    columns.push({
      name,
      typeOid: Number(row['type']),
      typeModifier: Number(row['modifier']),
      key: row['key'] === 't',
    });
}
