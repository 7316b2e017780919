import type { OldRow, Row } from './change.js';
import type { Lsn } from './lsn.js';
import type { Relation } from './relation.js';

/** Something that concerns the plugin alone, such as how it speaks. */
export interface AsideMessage {
  readonly kind: 'aside';
}

/** Opens a transaction. */
export interface BeginMessage {
  readonly kind: 'begin';
  /** Where the commit record of this transaction starts. */
  readonly finalLsn: Lsn;
  /** Time of the commit in microseconds since 1970-01-01 UTC. */
  readonly commitTimeMicros: bigint;
  /** Unsigned 32-bit transaction id; wraps around. */
  readonly xid: number;
}

/** Ends a transaction. */
export interface CommitMessage {
  readonly kind: 'commit';
  /** Start of the commit record. */
  readonly commitLsn: Lsn;
  /** End of the commit record. */
  readonly endLsn: Lsn;
  /** Time of the commit in microseconds since 1970-01-01 UTC. */
  readonly commitTimeMicros: bigint;
}

/** Says that the transaction was itself replicated from another server. */
export interface OriginMessage {
  readonly kind: 'origin';
  /** Position of the commit on the server it came from. */
  readonly lsn: Lsn;
  readonly name: string;
}

/**
 * A transaction, or a part of it, was rolled back of which nothing was sent. PostgreSQL 18 says so now and then of large transactions, though
 * only streams of running transactions have this message.
 */
export interface AbortMessage {
  readonly kind: 'abort';
  readonly xid: number;
  /** The subtransaction; the same as `xid` when the whole transaction was. */
  readonly subxid: number;
}

/** Announces the shape of a table before the first row of it, and again whenever the shape may have changed. */
export interface RelationMessage {
  readonly kind: 'relation';
  readonly relation: Relation;
}

/** Names a type that is not built in; for a domain, the name is that of its base type. */
export interface TypeMessage {
  readonly kind: 'type';
  readonly oid: number;
  readonly schema: string;
  readonly name: string;
}

export interface InsertMessage {
  readonly kind: 'insert';
  readonly relation: Relation;
  readonly record: Row;
}

export interface UpdateMessage {
  readonly kind: 'update';
  readonly relation: Relation;
  /** The new row without the columns named in {@link UpdateMessage.unchanged}. */
  readonly record: Row;
  /** Columns whose value the server did not send and the old row does not hold; in column order. */
  readonly unchanged: readonly string[];
  readonly old: OldRow<Row> | null;
}

export interface DeleteMessage {
  readonly kind: 'delete';
  readonly relation: Relation;
  readonly old: OldRow<Row>;
}

/** One TRUNCATE statement. */
export interface TruncateMessage {
  readonly kind: 'truncate';
  /** In the server's order. */
  readonly relations: readonly Relation[];
  readonly cascade: boolean;
  readonly restartIdentity: boolean;
}

/** What `pg_logical_emit_message()` wrote. */
export interface LogicalMessage {
  readonly kind: 'message';
  readonly transactional: boolean;
  /** End of its record, so a boundary: nothing else ends there, and what starts there is still to come. */
  readonly lsn: Lsn;
  readonly prefix: string;
  /** A copy that the receiver may keep. */
  readonly content: Buffer;
}

/**
 * One message of an output plugin. Nothing in it refers to the bytes it was read from.
 *
 * @see {@link https://www.postgresql.org/docs/current/protocol-logicalrep-message-formats.html | Logical Replication Message Formats}
 */
export type ReplicationMessage =
  | AsideMessage
  | BeginMessage
  | CommitMessage
  | OriginMessage
  | AbortMessage
  | RelationMessage
  | TypeMessage
  | InsertMessage
  | UpdateMessage
  | DeleteMessage
  | TruncateMessage
  | LogicalMessage;
