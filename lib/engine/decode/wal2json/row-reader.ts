import type { DocumentReader } from './document-reader.js';
import { literal, Literal } from './literal.js';
import { type MetHeader, type Tuple, TupleReader } from './tuple-reader.js';

const XID = literal(',"xid":');
const TIMESTAMP = literal(',"timestamp":');
const LSN = literal(',"lsn":');
const SCHEMA = literal(',"schema":');
const TABLE = literal(',"table":');
const COLUMNS = literal(',"columns":[');
const IDENTITY = literal(',"identity":[');
const PRIMARY_KEY = literal(',"pk":[');
const NAME = literal('{"name":');
const TYPE = literal(',"type":');
const TYPE_OID = ',"typeoid":';
const OID = literal(TYPE_OID);
const COMMA = literal(',');
const BRACE = literal('}');
const BRACKET = literal(']');

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
  #keyBytes: Literal | null = null;
  #key: readonly string[] = [];

  /** @param bytes - the members of a document that name it */
  constructor(
    readonly bytes: Literal,
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
    if (this.#keyBytes !== null && reader.takes(this.#keyBytes))
      return this.#key;
    const start = reader.at;
    const names: string[] = [];
    if (!reader.takes(BRACKET)) {
      do {
        reader.expect(NAME, 'the name of a key column');
        names.push(reader.name());
        reader.expect(TYPE, 'the type of a key column');
        reader.typeName(TYPE_OID);
        reader.expect(OID, 'the type OID of a key column');
        reader.integer();
        reader.expect(BRACE, 'the end of a key column');
      } while (reader.takes(COMMA));
      reader.expect(BRACKET, 'the end of the key');
    }
    this.#key = names;
    this.#keyBytes = new Literal(reader.since(start));
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
    reader.expect(XID, 'the xid');
    reader.integer();
    reader.expect(TIMESTAMP, 'the time');
    reader.skipString();
    reader.expect(LSN, 'the position');
    reader.skipString();
    const table = this.#readTable(reader);
    let columns = null;
    if (action === 'insert' || action === 'update') {
      reader.expect(COLUMNS, 'the new row');
      columns = table.columns.read(reader);
    }
    let identity = null;
    if (action === 'delete') {
      reader.expect(IDENTITY, 'the old row');
      identity = table.identity.read(reader);
    } else if (action === 'update' && reader.takes(IDENTITY)) {
      identity = table.identity.read(reader);
    }
    let primaryKey: readonly string[] = [];
    if (action !== 'truncate') {
      reader.expect(PRIMARY_KEY, 'the primary key');
      primaryKey = table.readKey(reader);
    }
    reader.expect(BRACE, 'the end');
    reader.end();
    return { action, table, columns, identity, primaryKey };
  }

  #readTable(reader: DocumentReader): WrittenTable {
    if (this.#last !== null && reader.takes(this.#last.bytes))
      return this.#last;
    const start = reader.at;
    reader.expect(SCHEMA, 'the schema');
    const schema = reader.name();
    reader.expect(TABLE, 'the table');
    const name = reader.name();
    const bytes = reader.since(start);
    const text = bytes.toString('latin1');
    let table = this.#tables.get(text);
    if (table === undefined) {
      table = new WrittenTable(new Literal(bytes), schema, name);
      this.#tables.set(text, table);
    }
    this.#last = table;
    return table;
  }
}
