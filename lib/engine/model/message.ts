import type { Lsn } from './lsn.js';

/**
 * A logical decoding message, written with `pg_logical_emit_message()`.
 *
 * @see {@link https://www.postgresql.org/docs/current/functions-admin.html#FUNCTIONS-REPLICATION | Replication functions}
 */
export interface Message {
  /** Whether it belongs to a transaction or was sent by itself. */
  readonly transactional: boolean;
  /** Where its record in the WAL ends: what `pg_logical_emit_message()` has returned. No two messages have the same. */
  readonly lsn: Lsn;
  /** Chosen by the emitter; treated like a row value. */
  readonly prefix: string;
  /** The emitter's bytes; a copy that the receiver may keep. */
  readonly content: Buffer;
  /** Place within the transaction, shared with changes; `null` for a message outside one. */
  readonly ordinal: number | null;
}

/** What a handler of messages is told beside the message. */
export interface MessageContext {
  /** That of the message: the key by which a sink recognises what it already applied. */
  readonly lsn: Lsn;
}
