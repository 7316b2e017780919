import type { Decoded } from '../../lib/engine/decode/decoder.js';
import { Wal2jsonDecoder } from '../../lib/engine/decode/wal2json/wal2json-decoder.js';
import type {
  CatalogTable,
  Column,
  Relation,
} from '../../lib/engine/model/relation.js';
import { TypeTable } from '../../lib/engine/values/type-table.js';

/** A document is decoded so often at most: the catalog is asked for the table, its columns and types, and the table announced. */
const MOST_TRIES = 8;

/** A table that the catalog is said to have. Its columns are text, the first of them the key, unless they say something else. */
export function catalogTable(
  columns: readonly (string | Partial<Column>)[],
  table: Partial<Omit<CatalogTable, 'columns'>> = {},
): CatalogTable {
  const isFull = table.replicaIdentity === 'full';
  return {
    oid: 20_000,
    schema: 'public',
    table: 't',
    replicaIdentity: 'default',
    generated: [],
    ...table,
    columns: columns.map((column, index) => ({
      name: '',
      typeOid: 25,
      typeModifier: -1,
      key: isFull || index === 0,
      ...(typeof column === 'string' ? { name: column } : column),
    })),
  };
}

/** Decodes documents as the engine does: what is asked for is answered, then the document is decoded again. */
export class Wal2jsonDecoding {
  readonly decoder: Wal2jsonDecoder;
  readonly types = new TypeTable('exact');
  /** What was asked for, in turn. */
  readonly asked: string[] = [];
  /** What was announced, in turn. */
  readonly announced: Relation[] = [];

  /**
   * @param tables - as the catalog has them at the start
   * @param catalog - the catalog, as it answers
   */
  constructor(
    tables: readonly CatalogTable[],
    readonly catalog: CatalogTable[] = [...tables],
  ) {
    this.decoder = new Wal2jsonDecoder(this.types, tables);
  }

  /** The columns that were announced, in turn, with `*` at those of the identity. */
  get shapes(): string[] {
    return this.announced.map(({ columns }) =>
      columns.map(({ name, key }) => name + (key ? '*' : '')).join(' '),
    );
  }

  decode(bytes: Buffer, start?: number, end?: number): Decoded {
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const decoded = this.decoder.decode(bytes, start, end);
      switch (decoded.kind) {
        case 'table-needed': {
          const { schema, table } = decoded.name;
          this.asked.push(`${schema}.${table}`);
          decoded.learn(
            this.catalog.find(
              (one) => one.schema === schema && one.table === table,
            ) ?? null,
          );
          break;
        }
        case 'types-needed':
          this.asked.push(...decoded.oids.map(String));
          this.types.learn(decoded.oids, []);
          break;
        case 'announced':
          this.announced.push(decoded.relation);
          break;
        default:
          return decoded;
      }
    }
    throw new Error('the document is never decoded');
  }
}
