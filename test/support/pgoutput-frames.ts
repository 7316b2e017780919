/**
 * Builds messages of pgoutput byte by byte: of protocol version 1, and those by which running transactions are streamed.
 *
 * @see {@link https://www.postgresql.org/docs/current/protocol-logicalrep-message-formats.html | Logical Replication Message Formats}
 */

import {
  ascii,
  cstring,
  int16,
  int32,
  time,
  TIME,
  uint32,
  uint64,
  uint8,
} from './frame-bytes.js';

/** Stands in a tuple for a TOASTed value that the server does not send. */
export const UNCHANGED = Symbol('unchanged');

/** A value in a tuple: text, NULL, not sent, or (never asked for) binary. */
export type FrameValue = string | null | typeof UNCHANGED | Uint8Array;

export interface FrameColumn {
  readonly name: string;
  /** Default: 25, `text`. */
  readonly typeOid?: number;
  readonly typeModifier?: number;
  readonly key?: boolean;
}

export interface FrameRelation {
  readonly oid: number;
  readonly schema?: string;
  readonly table?: string;
  /** Default: `d`. */
  readonly identity?: string;
  readonly columns: readonly FrameColumn[];
}

export function beginFrame(
  finalLsn: bigint,
  xid = 700,
  commitTimeMicros = TIME,
): Buffer {
  return Buffer.concat([
    ascii('B'),
    uint64(finalLsn),
    time(commitTimeMicros),
    uint32(xid),
  ]);
}

export function commitFrame(
  commitLsn: bigint,
  endLsn: bigint,
  commitTimeMicros = TIME,
): Buffer {
  return Buffer.concat([
    ascii('C'),
    uint8(0),
    uint64(commitLsn),
    uint64(endLsn),
    time(commitTimeMicros),
  ]);
}

export function originFrame(lsn: bigint, name: string): Buffer {
  return Buffer.concat([ascii('O'), uint64(lsn), cstring(name)]);
}

export function typeFrame(oid: number, schema: string, name: string): Buffer {
  return Buffer.concat([
    ascii('Y'),
    uint32(oid),
    cstring(schema),
    cstring(name),
  ]);
}

export function relationFrame(relation: FrameRelation): Buffer {
  const { oid, columns } = relation;
  return Buffer.concat([
    ascii('R'),
    uint32(oid),
    cstring(relation.schema ?? 'public'),
    cstring(relation.table ?? 't'),
    ascii(relation.identity ?? 'd'),
    int16(columns.length),
    ...columns.flatMap((column) => [
      uint8(column.key === true ? 1 : 0),
      cstring(column.name),
      uint32(column.typeOid ?? 25),
      int32(column.typeModifier ?? -1),
    ]),
  ]);
}

export function insertFrame(
  oid: number,
  values: readonly FrameValue[],
): Buffer {
  return Buffer.concat([ascii('I'), uint32(oid), tuple('N', values)]);
}

export function updateFrame(
  oid: number,
  values: readonly FrameValue[],
  old?: { readonly kind: 'K' | 'O'; readonly values: readonly FrameValue[] },
): Buffer {
  return Buffer.concat([
    ascii('U'),
    uint32(oid),
    old === undefined ? Buffer.alloc(0) : tuple(old.kind, old.values),
    tuple('N', values),
  ]);
}

export function deleteFrame(
  oid: number,
  kind: 'K' | 'O',
  values: readonly FrameValue[],
): Buffer {
  return Buffer.concat([ascii('D'), uint32(oid), tuple(kind, values)]);
}

export function truncateFrame(oids: readonly number[], options = 0): Buffer {
  return Buffer.concat([
    ascii('T'),
    int32(oids.length),
    uint8(options),
    ...oids.map(uint32),
  ]);
}

export function messageFrame(message: {
  readonly flags: number;
  readonly lsn: bigint;
  readonly prefix: string;
  readonly content: Uint8Array;
}): Buffer {
  return Buffer.concat([
    ascii('M'),
    uint8(message.flags),
    uint64(message.lsn),
    cstring(message.prefix),
    int32(message.content.length),
    message.content,
  ]);
}

/** @param first - nothing of the transaction was sent before */
export function streamStartFrame(xid: number, first = true): Buffer {
  return Buffer.concat([ascii('S'), uint32(xid), uint8(first ? 1 : 0)]);
}

export function streamStopFrame(): Buffer {
  return ascii('E');
}

/** A message between Stream Start and Stream Stop: behind its tag stands a transaction, mostly the subtransaction. */
export function streamedFrame(xid: number, frame: Buffer): Buffer {
  return Buffer.concat([frame.subarray(0, 1), uint32(xid), frame.subarray(1)]);
}

/** @param abort - what protocol version 4 adds */
export function streamAbortFrame(
  xid: number,
  subxid: number,
  abort?: { readonly lsn: bigint; readonly timeMicros: bigint },
): Buffer {
  return Buffer.concat([
    ascii('A'),
    uint32(xid),
    uint32(subxid),
    ...(abort === undefined ? [] : [uint64(abort.lsn), time(abort.timeMicros)]),
  ]);
}

export function streamCommitFrame(
  xid: number,
  commitLsn: bigint,
  endLsn: bigint,
  commitTimeMicros = TIME,
): Buffer {
  return Buffer.concat([
    ascii('c'),
    uint32(xid),
    uint8(0),
    uint64(commitLsn),
    uint64(endLsn),
    time(commitTimeMicros),
  ]);
}

function tuple(tag: string, values: readonly FrameValue[]): Buffer {
  return Buffer.concat([
    ascii(tag),
    int16(values.length),
    ...values.map(field),
  ]);
}

function field(value: FrameValue): Buffer {
  if (value === null) return ascii('n');
  if (value === UNCHANGED) return ascii('u');
  if (typeof value !== 'string') return sized('b', Buffer.from(value));
  return sized('t', Buffer.from(value));
}

function sized(tag: string, bytes: Buffer): Buffer {
  return Buffer.concat([ascii(tag), int32(bytes.length), bytes]);
}
