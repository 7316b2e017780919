import type { Lsn } from '../model/lsn.js';
import { POSTGRES_EPOCH_MICROS } from '../model/postgres-epoch.js';

/** Bytes before the payload of an XLogData frame. */
export const XLOG_DATA_HEADER = 25;

const XLOG_DATA = 0x77;
const KEEPALIVE = 0x6b;
const KEEPALIVE_LENGTH = 18;
const STATUS_UPDATE = 0x72;
const STATUS_LENGTH = 34;
/**
 * A frame of the replication stream.
 *
 * @see {@link https://www.postgresql.org/docs/current/protocol-replication.html#PROTOCOL-REPLICATION-START-REPLICATION | START_REPLICATION}
 */
export type Frame =
  /** Bytes of the output plugin; `payload` is a view that lives as long as the frame's buffer. */
  | { readonly kind: 'data'; readonly start: Lsn; readonly payload: Buffer }
  /** The server's position, and whether it wants to hear from us at once. */
  | {
      readonly kind: 'keepalive';
      readonly walEnd: Lsn;
      readonly replyAsked: boolean;
    }
  | { readonly kind: 'malformed' };

/** Reads the frame in a CopyData message. Never throws. */
export function readFrame(chunk: Buffer): Frame {
  if (chunk[0] === XLOG_DATA && chunk.length >= XLOG_DATA_HEADER) {
    return {
      kind: 'data',
      start: chunk.readBigUInt64BE(1),
      payload: chunk.subarray(XLOG_DATA_HEADER),
    };
  }
  if (chunk[0] === KEEPALIVE && chunk.length === KEEPALIVE_LENGTH) {
    return {
      kind: 'keepalive',
      walEnd: chunk.readBigUInt64BE(1),
      replyAsked: chunk[17] === 1,
    };
  }
  return { kind: 'malformed' };
}

/** What the server is told. */
export interface Status {
  readonly write: Lsn;
  readonly flush: Lsn;
  readonly apply: Lsn;
}

/** Writes a standby status update. */
export function writeStatus(
  status: Status,
  nowMs: number,
  replyAsked: boolean,
): Buffer {
  const buffer = Buffer.alloc(STATUS_LENGTH);
  buffer[0] = STATUS_UPDATE;
  buffer.writeBigUInt64BE(status.write, 1);
  buffer.writeBigUInt64BE(status.flush, 9);
  buffer.writeBigUInt64BE(status.apply, 17);
  buffer.writeBigInt64BE(
    BigInt(Math.trunc(nowMs)) * 1000n - POSTGRES_EPOCH_MICROS,
    25,
  );
  buffer[33] = replyAsked ? 1 : 0;
  return buffer;
}
