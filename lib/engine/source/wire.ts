import type { Lsn } from '../model/lsn.js';
import { POSTGRES_EPOCH_MICROS } from '../model/postgres-epoch.js';

/** Bytes before the payload of an XLogData frame. */
export const XLOG_DATA_HEADER = 25;

const XLOG_DATA = 0x77;
const KEEPALIVE = 0x6b;
const KEEPALIVE_LENGTH = 18;
const STATUS_UPDATE = 0x72;
const STATUS_LENGTH = 34;

/** What a frame of the replication stream is: bytes of the output plugin, or the server's position. */
export type FrameKind = 'data' | 'keepalive' | 'malformed';

/**
 * Tells the kind of the frame from `start` to `end`. Never throws. The functions below read what only its kind has.
 *
 * @see {@link https://www.postgresql.org/docs/current/protocol-replication.html#PROTOCOL-REPLICATION-START-REPLICATION | START_REPLICATION}
 */
export function frameKind(
  bytes: Buffer,
  start: number,
  end: number,
): FrameKind {
  const length = end - start;
  if (length >= XLOG_DATA_HEADER && bytes[start] === XLOG_DATA) return 'data';
  if (length === KEEPALIVE_LENGTH && bytes[start] === KEEPALIVE)
    return 'keepalive';
  return 'malformed';
}

/** Where the data of a frame starts in the WAL, or where the server is. */
export function framePosition(bytes: Buffer, start: number): Lsn {
  return bytes.readBigUInt64BE(start + 1);
}

/** Whether a keepalive wants an answer at once. */
export function asksForReply(bytes: Buffer, start: number): boolean {
  return bytes[start + KEEPALIVE_LENGTH - 1] === 1;
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
