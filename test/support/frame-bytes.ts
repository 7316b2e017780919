/** Of what messages of output plugins are built. */

/** Microseconds between 1970-01-01 and 2000-01-01 UTC. */
const EPOCH = 946_684_800_000_000n;

/** Some time of a commit: 2026-01-02T03:04:05.123456Z. */
export const TIME = 1_767_323_045_123_456n;

export function ascii(text: string): Buffer {
  return Buffer.from(text, 'latin1');
}

export function cstring(text: string): Buffer {
  return Buffer.from(`${text}\0`);
}

export function uint8(value: number): Buffer {
  return Buffer.of(value);
}

export function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(value);
  return bytes;
}

export function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** @param micros - since 1970-01-01 UTC */
export function time(micros: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(micros - EPOCH);
  return bytes;
}

export function uint64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(value);
  return bytes;
}
