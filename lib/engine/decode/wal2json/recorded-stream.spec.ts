import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { recordedFrames } from '../../../../test/support/recorded-frames.js';
import {
  catalogTable,
  Wal2jsonDecoding,
} from '../../../../test/support/wal2json-decoding.js';
import type { Decoded } from '../decoder.js';

const FRAMES = recordedFrames('wal2json-v2.json');

/** Tables of which the documents do not show everything; all others are known from documents alone. */
const TABLES = [
  catalogTable(
    [
      { name: 'id', typeOid: 23 },
      'v',
      'big',
      { name: 'm', typeOid: 20_000 },
      { name: 'f', typeOid: 16 },
    ],
    { oid: 30_001, table: 't' },
  ),
  catalogTable([{ name: 'id', typeOid: 23 }, 'b', 'big'], {
    oid: 30_002,
    table: 'full_row',
    replicaIdentity: 'full',
  }),
  catalogTable([{ name: 'id', typeOid: 23 }], {
    oid: 30_003,
    table: 'generated',
    generated: ['twice'],
  }),
];

function decoding(): Wal2jsonDecoding {
  return new Wal2jsonDecoding(TABLES);
}

const decoder = decoding();
const messages = FRAMES.map((frame) => decoder.decode(frame));

function rowsOf(table: string): Decoded[] {
  return messages.filter(
    (message) =>
      (message.kind === 'insert' ||
        message.kind === 'update' ||
        message.kind === 'delete') &&
      message.relation.name === table,
  );
}

describe('a recorded stream of wal2json 2.6', () => {
  it('has every message of the format and no fault', () => {
    const kinds = new Set(messages.map(({ kind }) => kind));
    expect([...kinds].toSorted()).toEqual([
      'begin',
      'commit',
      'delete',
      'insert',
      'message',
      'truncate',
      'update',
    ]);
  });

  // A domain over bool whose base nobody has said is text.
  it('has NULL, empty text, unchanged large values and keys', () => {
    const big = 'x'.repeat(2100);
    expect(rowsOf('public.t').slice(0, 8)).toMatchObject([
      { record: { id: 1, v: null, big, m: 'o"k', f: 't' } },
      { record: { id: 2, v: '', big: null, m: null, f: null } },
      { record: { id: 3, big: 'é😀', m: 'sad', f: 'f' } },
      { record: { id: 1, v: 'changed' }, unchanged: ['big'], old: null },
      {
        record: { id: 4, v: 'changed' },
        unchanged: ['big'],
        old: { kind: 'key', record: { id: 1 } },
      },
      { record: { id: 4, big: null }, old: null },
      { old: { kind: 'key', record: { id: 2 } } },
      { old: { kind: 'key', record: { id: 3 } } },
    ]);
  });

  it('fills unchanged large values from a full old row', () => {
    const big = 'y'.repeat(2100);
    expect(rowsOf('public.full_row')).toMatchObject([
      { record: { id: 1, b: null, big } },
      {
        record: { id: 1, b: 'b', big },
        unchanged: [],
        old: { kind: 'full', record: { id: 1, b: null, big } },
      },
      { record: { id: 2, b: 'b', big }, old: { kind: 'full' } },
      { old: { kind: 'full', record: { id: 2, b: 'b', big } } },
    ]);
  });

  it('has numbers, bytes and JSON as the server prints them, and no generated columns', () => {
    expect(rowsOf('public.n')[0]).toMatchObject({
      record: {
        id: 1,
        b: true,
        i2: -32768,
        i8: '9223372036854775807',
        o: 4294967295,
        f4: Number.NaN,
        f8: Number.POSITIVE_INFINITY,
        num: '1.10',
        bytes: Buffer.from('deadbeef00', 'hex'),
        j: '{"a":1.0, "a":12345678901234567890}',
        jb: '{"d": 1.10}',
        ints: [1, null, 3],
        bools: [true, false],
        at: '2026-01-02T03:04:05.123456Z',
        c: 'ab   ',
      },
    });
    expect(rowsOf('public.generated')).toMatchObject([{ record: { id: 1 } }]);
    expect(rowsOf('public.generated')[0]).not.toHaveProperty('record.twice');
  });

  it('has messages inside and outside transactions', () => {
    expect(messages.filter(({ kind }) => kind === 'message')).toMatchObject([
      {
        transactional: false,
        prefix: 'prefix',
        content: Buffer.from('out "of" é'),
      },
      { transactional: true, prefix: 'prefix', content: Buffer.from('in') },
      { transactional: true, prefix: '', content: Buffer.from('') },
    ]);
  });

  it('has no document of which a part is a document', () => {
    const tampered = decoding();
    for (const frame of FRAMES) {
      tampered.decode(frame);
      const step = Math.max(1, Math.floor(frame.length / 50));
      for (let length = 0; length < frame.length; length += step)
        expect(tampered.decode(frame.subarray(0, length))).toHaveProperty(
          'kind',
          'fault',
        );
    }
  });

  it('has no document that makes a decoder throw when a bit of it is flipped', () => {
    const tampered = decoding();
    for (const frame of FRAMES) tampered.decode(frame);
    fc.assert(
      fc.property(fc.constantFrom(...FRAMES), fc.nat(), (frame, bit) => {
        const at = (bit >> 3) % frame.length;
        const flipped = Buffer.from(frame);
        flipped.writeUInt8(flipped.readUInt8(at) ^ (1 << (bit & 7)), at);
        expect(tampered.decode(flipped)).toHaveProperty('kind');
      }),
      { numRuns: 2_000 },
    );
  });
});
