import type {
  CatalogTable,
  ReplicaIdentity,
  TableShape,
} from '../../model/relation.js';
import type { WireTable } from './relation-message.js';

/**
 * The type `unknown` of PostgreSQL, which no column has since version 10: stands for that of a column that was dropped
 * or renamed since, so that nobody can say what it was. Its values are text. It differs from every type that the column
 * may have had before, so that a change of the schema is noticed instead of values that silently became text.
 */
export const UNKNOWN_TYPE = 705;

const UNKNOWN = { typeOid: UNKNOWN_TYPE, typeModifier: -1 };

/**
 * What a Relation message announces. The columns are those of the message: the catalog may be newer. Their types are
 * not on the wire.
 *
 * @param sources - who knows the rest, the best first
 */
export function announcedTable(
  wire: WireTable,
  sources: readonly CatalogTable[],
): CatalogTable {
  const { oid, schema, table } = wire;
  const keyed = wire.columns.some(({ key }) => key);
  const replicaIdentity =
    sources.find((source) => agrees(source, keyed))?.replicaIdentity ??
    'default';
  const generated = sources[0]?.generated ?? [];
  return {
    oid,
    schema,
    table,
    replicaIdentity,
    columns: wire.columns
      .filter(({ name }) => !generated.includes(name))
      .map(({ name, key }) => {
        const { typeOid, typeModifier } = columnOf(sources, name);
        return {
          name,
          typeOid,
          typeModifier,
          key: key || replicaIdentity === 'full',
        };
      }),
    generated,
  };
}

/** Whether the table can have had this identity when the server described it. */
function agrees(
  { replicaIdentity, columns }: TableShape,
  keyed: boolean,
): boolean {
  if (keyed) return hasIndex(replicaIdentity);
  return !hasIndex(replicaIdentity) || !columns.some(({ key }) => key);
}

function hasIndex(identity: ReplicaIdentity): boolean {
  return identity === 'default' || identity === 'index';
}

function columnOf(
  sources: readonly CatalogTable[],
  name: string,
): Pick<TableShape['columns'][number], 'typeOid' | 'typeModifier'> {
  for (const { columns } of sources) {
    const column = columns.find((known) => known.name === name);
    if (column !== undefined) return column;
  }
  return UNKNOWN;
}
