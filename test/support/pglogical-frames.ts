/**
 * Builds messages of pglogical_output byte by byte: of its native protocol, version 1.
 *
 * @see {@link https://github.com/2ndQuadrant/pglogical/blob/REL2_x_STABLE/internals-doc/protocol.txt | Protocol of pglogical}
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
import { type FrameValue, UNCHANGED } from './pgoutput-frames.js';

export { UNCHANGED };

/** A table as the plugin describes it: key columns begin with `*`. */
export interface FrameTable {
  readonly oid: number;
  readonly schema?: string;
  readonly table?: string;
  readonly columns: readonly string[];
}

export function startupFrame(
  parameters: Readonly<Record<string, string>> = {},
  format = 1,
): Buffer {
  const all = {
    max_proto_version: '1',
    min_proto_version: '1',
    database_encoding: 'UTF8',
    ...parameters,
  };
  return Buffer.concat([
    ascii('S'),
    uint8(format),
    ...Object.entries(all).flatMap(([key, value]) => [
      cstring(key),
      cstring(value),
    ]),
  ]);
}

export function beginFrame(
  finalLsn: bigint,
  xid = 700,
  commitTimeMicros = TIME,
): Buffer {
  return Buffer.concat([
    ascii('B\0'),
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
    ascii('C\0'),
    uint64(commitLsn),
    uint64(endLsn),
    time(commitTimeMicros),
  ]);
}

export function originFrame(lsn: bigint, name: string): Buffer {
  return Buffer.concat([ascii('O\0'), uint64(lsn), shortText(name)]);
}

export function relationFrame(described: FrameTable): Buffer {
  const { oid, schema = 'public', table = 't', columns } = described;
  return Buffer.concat([
    ascii('R\0'),
    uint32(oid),
    shortText(schema),
    shortText(table),
    ascii('A'),
    int16(columns.length),
    ...columns.flatMap((column) => {
      const key = column.startsWith('*');
      const name = cstring(key ? column.slice(1) : column);
      return [
        ascii('C'),
        uint8(key ? 1 : 0),
        ascii('N'),
        int16(name.length),
        name,
      ];
    }),
  ]);
}

export function insertFrame(
  oid: number,
  values: readonly FrameValue[],
): Buffer {
  return Buffer.concat([ascii('I\0'), uint32(oid), tuple('N', values)]);
}

/** @param old - the old row, when the plugin sends one */
export function updateFrame(
  oid: number,
  values: readonly FrameValue[],
  old?: readonly FrameValue[],
): Buffer {
  return Buffer.concat([
    ascii('U\0'),
    uint32(oid),
    old === undefined ? Buffer.alloc(0) : tuple('K', old),
    tuple('N', values),
  ]);
}

export function deleteFrame(
  oid: number,
  values: readonly FrameValue[],
): Buffer {
  return Buffer.concat([ascii('D\0'), uint32(oid), tuple('K', values)]);
}

function tuple(tag: string, values: readonly FrameValue[]): Buffer {
  return Buffer.concat([
    ascii(`${tag}T`),
    int16(values.length),
    ...values.map(field),
  ]);
}

function field(value: FrameValue): Buffer {
  if (value === null) return ascii('n');
  if (value === UNCHANGED) return ascii('u');
  if (typeof value !== 'string') return sized('b', Buffer.from(value));
  return sized('t', cstring(value));
}

function sized(kind: string, bytes: Buffer): Buffer {
  return Buffer.concat([ascii(kind), int32(bytes.length), bytes]);
}

/** A length of one byte, and a text that ends with a zero byte. */
function shortText(text: string): Buffer {
  const bytes = cstring(text);
  return Buffer.concat([uint8(bytes.length), bytes]);
}
