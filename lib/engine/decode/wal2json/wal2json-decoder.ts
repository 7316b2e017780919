import type { CatalogTable } from '../../model/relation.js';
import type { ReplicationMessage } from '../../model/replication-message.js';
import type { CatalogReview, Decoded, Decoder } from '../decoder.js';
import { faultOf, MalformedMessage } from '../malformed-message.js';
import type { ColumnTypes } from '../row-layout.js';
import { DocumentReader } from './document-reader.js';
import type { FittedRow } from './known-table.js';
import { literal } from './literal.js';
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

const ACTION = literal('{"action":');

/**
 * Reads the documents of the output plugin `wal2json`, format version 2, with its transactions, positions, times, types, type OIDs and
 * primary keys, and with numbers as strings.
 *
 * @see {@link https://github.com/eulerto/wal2json | wal2json}
 */
export class Wal2jsonDecoder implements Decoder {
  readonly #types: ColumnTypes;
  readonly #known: KnownTables;
  readonly #messages: boolean;
  readonly #reader = new DocumentReader();
  readonly #rows = new RowReader();

  /**
   * @param tables - those that the plugin was told to send, as the catalog has them at the start of the connection
   * @param messages - whether logical decoding messages are wanted: the plugin sends them in any case
   */
  constructor(
    types: ColumnTypes,
    tables: readonly CatalogTable[],
    messages = true,
  ) {
    this.#types = types;
    this.#messages = messages;
    this.#known = new KnownTables(tables);
  }

  get tables(): number {
    return this.#known.announced;
  }

  readonly scopes = null;

  /** The plugin cannot tell a column that was dropped from one that an update left as it was. */
  get review(): CatalogReview {
    return (tables) => this.#known.review(tables);
  }

  decode(bytes: Buffer, start = 0, end = bytes.length): Decoded {
    if (start >= end)
      return { kind: 'fault', code: 'decode_failure', detail: 'empty message' };
    let kind: Kind | 'document' = 'document';
    try {
      this.#reader.open(bytes, start, end);
      kind = this.#readKind();
      return this.#read(kind);
    } catch (error) {
      return faultOf(error, kind);
    }
  }

  #readKind(): Kind {
    this.#reader.expect(ACTION, 'the action');
    const kind = KINDS.get(this.#reader.string());
    if (kind === undefined)
      throw new MalformedMessage('unknown action', 'unsupported_message');
    return kind;
  }

  #read(kind: Kind): Decoded {
    switch (kind) {
      case 'begin':
        return readBegin(this.#reader);
      case 'commit':
        return readCommit(this.#reader);
      case 'message':
        return this.#readMessage();
      default:
        return this.#readRow(this.#rows.read(this.#reader, kind));
    }
  }

  #readMessage(): Decoded {
    const message = readLogicalMessage(this.#reader);
    return this.#messages ? message : { kind: 'aside' };
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
