import type { DecodeFault } from '../decode/decoder.js';
import {
  type StreamCommit,
  type StreamStart,
  StreamMessages,
  type StreamMessage,
} from '../decode/pgoutput/stream-messages.js';
import { HaltError } from '../model/halt.js';
import {
  type RoomLimits,
  type RoomPorts,
  StreamedRoom,
} from './streamed-room.js';
import { StreamedTransaction } from './streamed-transaction.js';

/** What may be held. */
export interface StreamedLimits extends RoomLimits {
  /** Transactions that are open at a time. */
  readonly transactions: number;
}

/** What became of a payload. */
export type Taken =
  /** It belongs to no transaction that is still running. */
  | { readonly kind: 'plain' }
  /** It is kept, or there is nothing to do. */
  | { readonly kind: 'kept' }
  /** A transaction that was kept has committed, and is to be run through now. */
  | {
      readonly kind: 'committed';
      readonly transaction: StreamedTransaction;
      readonly commit: StreamCommit;
    }
  /** A transaction has committed of which it is not known what was rolled back: it has to be read once more. */
  | { readonly kind: 'unclear'; readonly commit: StreamCommit }
  | DecodeFault;

const PLAIN: Taken = { kind: 'plain' };
const KEPT: Taken = { kind: 'kept' };

const RELATION = 0x52; // R
const ORIGIN = 0x4f; // O
/** What a transaction consists of: insert, update, delete, truncate, relation, type and message. */
const CONTENT = new Set(Buffer.from('IUDTRYM'));
/** The tag, and the transaction id that the server puts behind it. */
const PREFIX = 5;

/**
 * Keeps what the server sends of transactions while they still run: as bytes, until they commit. Their parts come interleaved; each is
 * kept with the transaction that it belongs to. When there is too much of it, the largest transaction goes to disk.
 *
 * @see {@link https://www.postgresql.org/docs/current/logicaldecoding-streaming.html | Streaming of Large Transactions for Logical Decoding}
 */
export class StreamedTransactions {
  readonly #most: number;
  readonly #ports: Pick<RoomPorts, 'failed'>;
  readonly #room: StreamedRoom;
  readonly #messages = new StreamMessages();
  readonly #open = new Map<number, StreamedTransaction>();
  /** The transaction that the next payloads belong to. */
  #current: StreamedTransaction | null = null;
  /** The one that is run through. */
  #committed: StreamedTransaction | null = null;
  #announcements = 0;
  /** Numbers of the announcements of tables by OID that count for everybody. */
  readonly #announced = new Map<number, number>();

  constructor(limits: StreamedLimits, ports: RoomPorts) {
    this.#most = limits.transactions;
    this.#ports = ports;
    this.#room = new StreamedRoom(limits, ports);
  }

  /** Transactions that are open. */
  get count(): number {
    return this.#open.size;
  }

  /** Bytes in memory. */
  get bytes(): number {
    return this.#room.bytes + (this.#committed?.bytes ?? 0);
  }

  get bytesOnDisk(): number {
    return this.#room.bytesOnDisk;
  }

  /** Takes the payload from `start` to `end` of a buffer that is used again. */
  take(bytes: Buffer, start: number, end: number): Taken {
    const message = this.#messages.read(bytes, start, end);
    if (message !== null)
      return message.kind === 'fault' ? message : this.#follow(message);
    const tag = start < end ? bytes.readUInt8(start) : 0;
    if (this.#current !== null)
      return this.#keep(this.#current, tag, bytes, start, end);
    if (tag === RELATION && end - start >= PREFIX)
      this.#announced.set(
        bytes.readUInt32BE(start + 1),
        (this.#announcements += 1),
      );
    return PLAIN;
  }

  /**
   * The transaction that has committed was run through to its end.
   *
   * @returns OIDs of the tables whose announcement in it is the newest
   */
  settle(transaction: StreamedTransaction): ReadonlySet<number> {
    // Everything was let go of meanwhile.
    if (this.#committed !== transaction) return new Set();
    this.#committed = null;
    this.#room.discard(transaction);
    const newest = [...transaction.announced].filter(
      ([oid, number]) => number > (this.#announced.get(oid) ?? 0),
    );
    for (const [oid, number] of newest) this.#announced.set(oid, number);
    return new Set(newest.map(([oid]) => oid));
  }

  /** Lets go of everything. Files are removed with their folder. */
  clear(): void {
    this.#open.clear();
    this.#current = null;
    this.#committed = null;
    this.#room.clear();
  }

  #follow(message: StreamMessage): Taken {
    const within = this.#current !== null;
    if (within !== (message.kind === 'stream-stop'))
      return violation(
        `${message.kind} ${within ? 'inside' : 'outside'} a part of a running transaction`,
      );
    switch (message.kind) {
      case 'stream-start':
        return this.#enter(message);
      case 'stream-stop':
        this.#current = null;
        return KEPT;
      case 'stream-abort':
        this.#abort(message.xid, message.subxid);
        return KEPT;
      case 'stream-commit':
        return this.#commit(message);
    }
  }

  #enter({ xid, first }: StreamStart): Taken {
    let transaction = this.#open.get(xid);
    if (first !== (transaction === undefined))
      return violation(
        first
          ? 'the beginning of a transaction that has begun before'
          : 'a part of a transaction without its beginning',
      );
    if (transaction === undefined) {
      if (this.#open.size >= this.#most) {
        this.#ports.failed(
          new HaltError('too_many_streams', {
            detail: `the server sends more than ${this.#most} transactions at a time`,
          }),
        );
        return KEPT;
      }
      transaction = new StreamedTransaction(xid);
      this.#open.set(xid, transaction);
      this.#room.open(transaction);
    }
    this.#current = transaction;
    return KEPT;
  }

  #keep(
    transaction: StreamedTransaction,
    tag: number,
    bytes: Buffer,
    start: number,
    end: number,
  ): Taken {
    // It says where the transaction comes from, and belongs to none of its subtransactions.
    if (tag === ORIGIN) return KEPT;
    if (!CONTENT.has(tag))
      return violation('a message that cannot be part of a transaction');
    if (end - start < PREFIX) return violation('a message without transaction');
    const subxid = bytes.readUInt32BE(start + 1);
    const before = transaction.bytes;
    transaction.append(subxid, tag, bytes, start + PREFIX, end);
    if (tag === RELATION && end - start >= PREFIX + 4)
      transaction.announced.set(
        bytes.readUInt32BE(start + PREFIX),
        (this.#announcements += 1),
      );
    this.#room.grow(transaction.bytes - before);
    return KEPT;
  }

  #abort(xid: number, subxid: number): void {
    const transaction = this.#open.get(xid);
    if (transaction === undefined) return;
    if (subxid !== xid) return transaction.abort(subxid);
    this.#close(transaction);
    this.#room.discard(transaction);
  }

  #commit(commit: StreamCommit): Taken {
    const transaction = this.#open.get(commit.xid);
    if (transaction === undefined)
      return violation('the commit of a transaction that was never begun');
    this.#close(transaction);
    if (transaction.isUnclear) {
      this.#room.discard(transaction);
      return { kind: 'unclear', commit };
    }
    this.#committed = transaction;
    return { kind: 'committed', transaction, commit };
  }

  #close(transaction: StreamedTransaction): void {
    this.#open.delete(transaction.xid);
    this.#room.close(transaction);
  }
}

function violation(detail: string): DecodeFault {
  return { kind: 'fault', code: 'protocol_violation', detail };
}
