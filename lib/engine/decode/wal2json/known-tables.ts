import type { CatalogTable, TableShape } from '../../model/relation.js';
import { KnownTable } from './known-table.js';
import { type RowDocument, tableKey, type WrittenTable } from './row-reader.js';
import { syntheticOid } from './synthetic-oid.js';

/** The tables of one connection, by their names: the plugin does not say an OID. */
export class KnownTables {
  readonly #tables: Map<string, KnownTable>;

  /** @param tables - as the catalog has them */
  constructor(tables: readonly CatalogTable[]) {
    this.#tables = new Map(
      tables.map((table) => [
        tableKey(table.schema, table.table),
        new KnownTable(table, table),
      ]),
    );
  }

  /** Number of the tables that were announced. */
  get announced(): number {
    let count = 0;
    for (const { isAnnounced } of this.#tables.values())
      count += Number(isAnnounced);
    return count;
  }

  get(table: WrittenTable): KnownTable | undefined {
    return this.#tables.get(table.key);
  }

  /**
   * Takes in what the catalog answered about the table of a document.
   *
   * @param table - `null` when it has no such table: then documents are all that is known of it
   */
  learn(row: RowDocument, table: CatalogTable | null): void {
    const known = this.#tables.get(row.table.key);
    if (known !== undefined) {
      known.learn(row, table);
      return;
    }
    this.#tables.set(
      row.table.key,
      table === null
        ? new KnownTable(emptyShape(row.table), null)
        : new KnownTable(table, table),
    );
  }

  /** Takes in how the catalog has the tables now. */
  review(tables: readonly CatalogTable[]): void {
    for (const table of tables)
      this.#tables.get(tableKey(table.schema, table.table))?.review(table);
  }
}

/** A table without columns, of which documents are to show what it is. */
function emptyShape({ schema, table }: WrittenTable): TableShape {
  return {
    oid: syntheticOid(schema, table),
    schema,
    table,
    replicaIdentity: 'default',
    columns: [],
  };
}
