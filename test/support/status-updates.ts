import type { Lsn } from '../../lib/engine/model/lsn.js';

/**
 * What a client tells the server about its progress.
 *
 * @see {@link https://www.postgresql.org/docs/current/protocol-replication.html#PROTOCOL-REPLICATION-STANDBY-STATUS-UPDATE | Standby status update}
 */
export interface StatusUpdate {
  readonly written: Lsn;
  readonly flushed: Lsn;
  readonly applied: Lsn;
  readonly replyRequested: boolean;
  /** `performance.now()` when it passed. */
  readonly at: number;
}

const COPY_DATA = 'd'.charCodeAt(0);
const STATUS_UPDATE = 'r'.charCodeAt(0);
const HEADER_BYTES = 5;

/** Finds the status updates in the bytes of one connection from client to server (without TLS). */
export class StatusUpdateReader {
  #rest: Buffer = Buffer.alloc(0);
  /** The first message, the startup packet, has no type byte. */
  #started = false;

  /** Takes the next bytes, gives the updates that they complete. */
  read(bytes: Buffer): StatusUpdate[] {
    this.#rest = Buffer.concat([this.#rest, bytes]);
    const updates: StatusUpdate[] = [];
    for (;;) {
      const typeBytes = this.#started ? 1 : 0;
      if (this.#rest.length < HEADER_BYTES) return updates;
      const end = typeBytes + this.#rest.readUInt32BE(typeBytes);
      if (this.#rest.length < end) return updates;
      const message = this.#rest.subarray(0, end);
      if (
        this.#started &&
        message[0] === COPY_DATA &&
        message[HEADER_BYTES] === STATUS_UPDATE
      ) {
        updates.push(parse(message.subarray(HEADER_BYTES + 1)));
      }
      this.#started = true;
      this.#rest = this.#rest.subarray(end);
    }
  }
}

function parse(body: Buffer): StatusUpdate {
  return {
    written: body.readBigUInt64BE(0),
    flushed: body.readBigUInt64BE(8),
    applied: body.readBigUInt64BE(16),
    replyRequested: body[32] === 1,
    at: performance.now(),
  };
}
