import type { Lsn } from '../../model/lsn.js';
import type { DecodeFault } from '../decoder.js';
import { ByteReader } from '../byte-reader.js';
import { faultOf } from '../malformed-message.js';
import { readTime } from './transaction-messages.js';

/** What follows, up to the next stop, belongs to a transaction that may still be running. */
export interface StreamStart {
  readonly kind: 'stream-start';
  readonly xid: number;
  /** Nothing of it was sent before. */
  readonly first: boolean;
}

export interface StreamStop {
  readonly kind: 'stream-stop';
}

/** A transaction, or one of its subtransactions, was rolled back. There is one for each of nested subtransactions. */
export interface StreamAbort {
  readonly kind: 'stream-abort';
  readonly xid: number;
  /** The subtransaction; the same as `xid` when the whole transaction was. */
  readonly subxid: number;
}

/** A transaction that was sent in parts has committed. */
export interface StreamCommit {
  readonly kind: 'stream-commit';
  readonly xid: number;
  /** Start of the commit record. */
  readonly commitLsn: Lsn;
  /** End of the commit record. */
  readonly endLsn: Lsn;
  /** Microseconds since 1970-01-01 UTC. */
  readonly commitTimeMicros: bigint;
}

/**
 * A message by which the server sends transactions that are still running.
 *
 * @see {@link https://www.postgresql.org/docs/current/protocol-logicalrep-message-formats.html | Logical Replication Message Formats}
 */
export type StreamMessage =
  StreamStart | StreamStop | StreamAbort | StreamCommit;

function readStreamStart(reader: ByteReader): StreamStart {
  const xid = reader.uint32();
  const first = reader.uint8() === 1;
  reader.end();
  return { kind: 'stream-start', xid, first };
}

function readStreamStop(reader: ByteReader): StreamStop {
  reader.end();
  return { kind: 'stream-stop' };
}

/** Protocol version 4 adds position and time of the abort, which nobody needs. */
export function readStreamAbort(reader: ByteReader): StreamAbort {
  const xid = reader.uint32();
  const subxid = reader.uint32();
  if (reader.left > 0) {
    reader.uint64();
    readTime(reader);
  }
  reader.end();
  return { kind: 'stream-abort', xid, subxid };
}

function readStreamCommit(reader: ByteReader): StreamCommit {
  const xid = reader.uint32();
  reader.skip(1); // flags, of which none is defined
  const commitLsn = reader.uint64();
  const endLsn = reader.uint64();
  const commitTimeMicros = readTime(reader);
  reader.end();
  return { kind: 'stream-commit', xid, commitLsn, endLsn, commitTimeMicros };
}

/** Reads those messages; one reader serves all of a connection. */
export class StreamMessages {
  readonly #reader = new ByteReader();

  /** Reads the message from `start` to `end`; `null` when it is of another kind. Never throws. */
  read(
    bytes: Buffer,
    start: number,
    end: number,
  ): StreamMessage | DecodeFault | null {
    const read = start < end ? READERS.get(bytes.readUInt8(start)) : undefined;
    if (read === undefined) return null;
    this.#reader.open(bytes, start + 1, end);
    try {
      return read(this.#reader);
    } catch (error) {
      return faultOf(error, 'stream message');
    }
  }
}

const READERS: ReadonlyMap<number, (reader: ByteReader) => StreamMessage> =
  new Map<number, (reader: ByteReader) => StreamMessage>([
    [0x53, readStreamStart], // S
    [0x45, readStreamStop], // E
    [0x41, readStreamAbort], // A
    [0x63, readStreamCommit], // c
  ]);
