import { isUtf8 } from 'node:buffer';
import type { CatalogTable } from '../../model/relation.js';
import type { ReplicationMessage } from '../../model/replication-message.js';
import type { Decoded, Decoder } from '../decoder.js';
import { faultOf, MalformedMessage } from '../malformed-message.js';
import type { ColumnTypes } from '../row-layout.js';
import { DocumentReader } from './document-reader.js';
import type { FittedRow } from './known-table.js';
import { KnownTables } from './known-tables.js';
import { type RowAction, type RowDocument, RowReader } from './row-reader.js';
import {
  deleteMessage,
  insertMessage,
  truncateMessage,
  updateMessage,
} from './rows.js';
import {
  readBegin,
  readCommit,
  readLogicalMessage,
} from './transaction-documents.js';

type Kind = RowAction | 'begin' | 'commit' | 'message';

/** What a document tells of, by its action. */
const KINDS: ReadonlyMap<string, Kind> = new Map([
  ['B', 'begin'],
  ['C', 'commit'],
  ['D', 'delete'],
  ['I', 'insert'],
  ['M', 'message'],
  ['T', 'truncate'],
  ['U', 'update'],
]);

/** Stands where bytes were no UTF-8, or where it was written. */
const REPLACEMENT = '\ufffd';

/**
 * Reads the documents of the output plugin `wal2json`, format version 2, with its transactions, positions, times, types, type OIDs and
 * primary keys, and with numbers as strings.
 *
 * @see {@link https://github.com/eulerto/wal2json | wal2json}
 */
export class Wal2jsonDecoder implements Decoder {
  readonly #types: ColumnTypes;
  readonly #known: KnownTables;
  readonly #reader = new DocumentReader();
  readonly #rows = new RowReader();

  /** @param tables - those that the plugin was told to send, as the catalog has them at the start of the connection */
  constructor(types: ColumnTypes, tables: readonly CatalogTable[]) {
    this.#types = types;
    this.#known = new KnownTables(tables);
  }

  get tables(): number {
    return this.#known.announced;
  }

  /**
   * Compares the catalog as it is now with what is known. The plugin cannot tell a column that was dropped from one that an update left as it was,
   * so a table that has lost columns, or its name to another table, is announced before its next row.
   */
  review(tables: readonly CatalogTable[]): void {
    this.#known.review(tables);
  }

  decode(bytes: Buffer, start = 0, end = bytes.length): Decoded {
    if (start >= end)
      return { kind: 'fault', code: 'decode_failure', detail: 'empty message' };
    let kind: Kind | 'document' = 'document';
    try {
      const encoding = this.#open(bytes, start, end);
      kind = this.#readKind();
      if (kind === 'message') return readLogicalMessage(this.#reader, encoding);
      if (encoding !== 'utf8') throw new MalformedMessage('not UTF-8');
      return this.#read(kind);
    } catch (error) {
      return faultOf(error, kind);
    }
  }

  /** @returns `latin1` when the bytes are no UTF-8: then the text has a character for each of them */
  #open(bytes: Buffer, start: number, end: number): 'utf8' | 'latin1' {
    const text = bytes.toString('utf8', start, end);
    const encoding =
      text.includes(REPLACEMENT) && !isUtf8(bytes.subarray(start, end))
        ? 'latin1'
        : 'utf8';
    this.#reader.open(
      encoding === 'utf8' ? text : bytes.toString(encoding, start, end),
    );
    return encoding;
  }

  #readKind(): Kind {
    this.#reader.expect('{"action":', 'the action');
    const kind = KINDS.get(this.#reader.string());
    if (kind === undefined)
      throw new MalformedMessage('unknown action', 'unsupported_message');
    return kind;
  }

  #read(kind: Exclude<Kind, 'message'>): Decoded {
    switch (kind) {
      case 'begin':
        return readBegin(this.#reader);
      case 'commit':
        return readCommit(this.#reader);
      default:
        return this.#readRow(this.#rows.read(this.#reader, kind));
    }
  }

  #readRow(row: RowDocument): Decoded {
    const table = this.#known.get(row.table);
    const fitted = table?.fit(row) ?? null;
    if (fitted !== null) return rowMessage(row.action, fitted);
    if (table === undefined || table.asksFor(row)) {
      const { schema, table: name } = row.table;
      return {
        kind: 'table-needed',
        name: { schema, table: name },
        learn: (answer) => this.#known.learn(row, answer),
      };
    }
    const oids = table.typesOf(row);
    const unknown = [
      ...this.#types.unnamed(oids),
      ...this.#types.unresolved(oids),
    ];
    return unknown.length > 0
      ? { kind: 'types-needed', oids: [...new Set(unknown)] }
      : { kind: 'announced', relation: table.announce(row, this.#types) };
  }
}

function rowMessage(action: RowAction, row: FittedRow): ReplicationMessage {
  switch (action) {
    case 'insert':
      return insertMessage(row);
    case 'update':
      return updateMessage(row);
    case 'delete':
      return deleteMessage(row);
    case 'truncate':
      return truncateMessage(row);
  }
}
