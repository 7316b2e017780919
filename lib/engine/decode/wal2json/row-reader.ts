import type { DocumentReader } from './document-reader.js';
import { type MetHeader, type Tuple, TupleReader } from './tuple-reader.js';

/** What a document about a table tells of. */
export type RowAction = 'insert' | 'update' | 'delete' | 'truncate';

/** A document about a table, as it was written. */
export interface RowDocument {
  readonly action: RowAction;
  readonly table: WrittenTable;
  /** The new row, of an insert or update. */
  readonly columns: Tuple | null;
  /**
   * The old row under the full identity, otherwise the columns of the identity: before the update or delete, or of the new row of an update that
   * left them as they were.
   */
  readonly identity: Tuple | null;
  /** Names of the columns of the primary key, whatever the identity is. */
  readonly primaryKey: readonly string[];
}

/** No other table has the same. */
export function tableKey(schema: string, table: string): string {
  return `${schema}\0${table}`;
}

/** How a table is written. There is one object for each. */
export class WrittenTable {
  /** As {@link tableKey} gives it. */
  readonly key: string;
  readonly columns: TupleReader;
  readonly identity: TupleReader;
  #keyText = '';
  #key: readonly string[] = [];

  /** @param text - the members of a document that name it */
  constructor(
    readonly text: string,
    readonly schema: string,
    readonly table: string,
  ) {
    this.key = tableKey(schema, table);
    const name = `${schema}.${table}`;
    const met = new Map<string, MetHeader>();
    this.columns = new TupleReader(name, met);
    this.identity = new TupleReader(name, met);
  }

  /** Reads names of columns, and what else is said of each, up to the end of the list. */
  readKey(reader: DocumentReader): readonly string[] {
    // In most documents it is the same as in the one before.
    if (this.#keyText !== '' && reader.takes(this.#keyText)) return this.#key;
    const start = reader.at;
    const names: string[] = [];
    if (!reader.takes(']')) {
      do {
        reader.expect('{"name":', 'the name of a key column');
        names.push(reader.name());
        reader.expect(',"type":', 'the type of a key column');
        reader.typeName(',"typeoid":');
        reader.expect(',"typeoid":', 'the type OID of a key column');
        reader.integer();
        reader.expect('}', 'the end of a key column');
      } while (reader.takes(','));
      reader.expect(']', 'the end of the key');
    }
    this.#key = names;
    this.#keyText = reader.since(start);
    return names;
  }
}

/** Reads documents about tables. */
export class RowReader {
  readonly #tables = new Map<string, WrittenTable>();
  /** Of the document before: mostly that of the next. */
  #last: WrittenTable | null = null;

  /** Reads what follows the action. */
  read(reader: DocumentReader, action: RowAction): RowDocument {
    // Those of the transaction count.
    reader.expect(',"xid":', 'the xid');
    reader.integer();
    reader.expect(',"timestamp":', 'the time');
    reader.skipString();
    reader.expect(',"lsn":', 'the position');
    reader.skipString();
    const table = this.#readTable(reader);
    let columns = null;
    if (action === 'insert' || action === 'update') {
      reader.expect(',"columns":[', 'the new row');
      columns = table.columns.read(reader);
    }
    let identity = null;
    if (action === 'delete') {
      reader.expect(',"identity":[', 'the old row');
      identity = table.identity.read(reader);
    } else if (action === 'update' && reader.takes(',"identity":[')) {
      identity = table.identity.read(reader);
    }
    let primaryKey: readonly string[] = [];
    if (action !== 'truncate') {
      reader.expect(',"pk":[', 'the primary key');
      primaryKey = table.readKey(reader);
    }
    reader.expect('}', 'the end');
    reader.end();
    return { action, table, columns, identity, primaryKey };
  }

  #readTable(reader: DocumentReader): WrittenTable {
    if (this.#last !== null && reader.takes(this.#last.text)) return this.#last;
    const start = reader.at;
    reader.expect(',"schema":', 'the schema');
    const schema = reader.name();
    reader.expect(',"table":', 'the table');
    const name = reader.name();
    const text = reader.since(start);
    let table = this.#tables.get(text);
    if (table === undefined) {
      table = new WrittenTable(text, schema, name);
      this.#tables.set(text, table);
    }
    this.#last = table;
    return table;
  }
}
