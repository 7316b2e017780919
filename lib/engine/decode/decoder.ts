import type { CatalogTable, Relation, TableName } from '../model/relation.js';
import type { ReplicationMessage } from '../model/replication-message.js';

/**
 * The payload is about a table with types that the catalog must be asked for first. Nothing was changed:
 * teach them to the type table, then decode the same payload again.
 */
export interface TypesNeeded {
  readonly kind: 'types-needed';
  /** OIDs of the types. */
  readonly oids: readonly number[];
}

/**
 * The payload is about a table that the catalog must be asked for first, because the plugin does not say all of it. Nothing was changed:
 * give the answer, then decode the same payload again.
 */
export interface TableNeeded {
  readonly kind: 'table-needed';
  readonly name: TableName;
  /** Takes the answer; `null` when the catalog has no such table any more. */
  learn(table: CatalogTable | null): void;
}

/**
 * The payload is about a table whose shape is news, and the plugin does not announce any: this comes before it. Then decode the same payload
 * again.
 */
export interface Announced {
  readonly kind: 'announced';
  readonly relation: Relation;
}

/** The payload is no message this decoder can read. It changed nothing. */
export interface DecodeFault {
  readonly kind: 'fault';
  readonly code:
    | 'decode_failure'
    | 'unsupported_message'
    | 'protocol_violation'
    | 'insert_incomplete'
    | 'decoder/lsn_missing'
    | 'decoder/protocol_unsupported';
  /** What is wrong with the structure: names of messages, tables and columns, never a value. */
  readonly detail: string;
}

/** What has to be learned before a payload can be decoded. */
export type Needed = TypesNeeded | TableNeeded;

export type Decoded =
  ReplicationMessage | Needed | Announced | DecodeFault;

/** Reads what one output plugin writes. It keeps the announced tables, so there is one for each connection. */
export interface Decoder {
  /**
   * Decodes the plugin's bytes of one XLogData frame: those from `start` to `end`, by default all. Never throws. They
   * may be overwritten as soon as this has returned.
   */
  decode(bytes: Buffer, start?: number, end?: number): Decoded;
  /** Number of the tables that were announced: a server announces each once, so none of them may be forgotten. */
  readonly tables: number;
  /** `null` when the plugin sends no transactions while they run. */
  readonly scopes: DecoderScopes | null;
}

/** Tables that are announced in transactions which are sent while they run. */
export interface DecoderScopes {
  /**
   * What is announced from here on belongs to a transaction that was sent while it ran, and is decoded only now: announcements that came
   * meanwhile may be newer.
   */
  beginScope(): void;
  /**
   * The end of that transaction.
   *
   * @param kept - OIDs of tables whose announcement in it is the newest, and counts from here on
   * @returns what the stream goes on with of the other tables that were announced in it: that is not announced again
   */
  endScope(kept: ReadonlySet<number>): readonly Relation[];
}
