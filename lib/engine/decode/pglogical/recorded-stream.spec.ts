import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { recordedFrames } from '../../../../test/support/recorded-frames.js';
import {
  type CatalogDecoding,
  catalogTable,
} from '../../../../test/support/catalog-decoding.js';
import { pglogicalDecoding } from '../../../../test/support/pglogical-decoding.js';
import { parseLsn } from '../../model/lsn.js';
import type { CatalogTable } from '../../model/relation.js';
import type { Decoded } from '../decoder.js';

const FRAMES = recordedFrames('pglogical-v1.json');

/** The catalog as it was when the recording ended. */
const TABLES: Readonly<
  Record<string, [columns: string[], more?: Partial<CatalogTable>]>
> = {
  t: [['*id:23', 'big', 'm:20000', 'f:16', 'e:23']],
  i: [['*id:23', 'u', 'v']],
  full_row: [['id:23', 'b', 'big'], { replicaIdentity: 'full' }],
  keyless: [['v']],
  z: [[]],
  k: [['*id', 'v:23']],
  dropped: [['*id:23', 'v']],
  generated: [['*id:23'], { generated: ['twice'] }],
  parts_low: [['*id:23', 'v']],
  parts_high: [['*id:23', 'v']],
  ta: [['*id:23']],
  tb: [['*id:23', 'a:23']],
  n: [
    // prettier-ignore
    ['*id:23', 'b:16', 'i2:21', 'i8:20', 'o:26', 'f4:700', 'f8:701', 'num:1700', 'bytes:17', 's:20001', 'j:114', 'jb:3802', 'ints:1007', 'texts:1009', 'bools:1000', 'r:3904', 'at:1184', 'c:1042'],
  ],
};

/** What the server gave the tables as OIDs is known from the recording alone. */
function catalog(): CatalogTable[] {
  const oids = new Map<string, number>();
  const blind = pglogicalDecoding([]);
  for (const frame of FRAMES) {
    const decoded = blind.decode(frame);
    if (decoded.kind !== 'relation') continue;
    oids.set(decoded.relation.table, decoded.relation.oid);
  }
  return Object.entries(TABLES).map(([table, [columns, more]]) =>
    catalogTable(oids.get(table) ?? 1, columns, { table, ...more }),
  );
}

const CATALOG = catalog();

/** A domain over bytea. */
const CATALOG_TYPES = [
  { oid: '20001', kind: 'domain', inner: '17', delimiter: ',' },
] as const;

function decoding(): CatalogDecoding {
  return pglogicalDecoding(CATALOG, [], CATALOG_TYPES);
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

const LARGE = { x: 'x'.repeat(2100), y: 'y'.repeat(2100), k: 'k'.repeat(2100) };

describe('a recorded stream of pglogical 2.4', () => {
  it('has every message of the protocol and no fault', () => {
    const kinds = new Set(messages.map(({ kind }) => kind));
    expect([...kinds].toSorted()).toEqual([
      'aside',
      'begin',
      'commit',
      'delete',
      'insert',
      'origin',
      'relation',
      'truncate',
      'update',
    ]);
  });

  it('has NULL, empty text and unchanged large values', () => {
    const first = { id: 1, v: 'changed', m: 'o"k', f: true };
    expect(rowsOf('public.t').slice(0, 8)).toMatchObject([
      { record: { id: 1, v: null, big: LARGE.x, m: 'o"k', f: true } },
      { record: { id: 2, v: '', big: null, m: null, f: null } },
      { record: { id: 3, big: 'é😀', m: 'sad', f: false } },
      { record: first, unchanged: ['big'], old: null },
      {
        record: { ...first, id: 4 },
        unchanged: ['big'],
        old: { kind: 'key', record: { id: 1 } },
      },
      { record: { id: 4, big: null }, unchanged: [] },
      { kind: 'delete', old: { kind: 'key', record: { id: 2 } } },
      { kind: 'delete', old: { kind: 'key', record: { id: 3 } } },
    ]);
  });

  it('has the key of an index', () => {
    expect(rowsOf('public.i').slice(0, 5)).toMatchObject([
      { record: { id: 1, u: 'u', v: 'v' } },
      { record: { v: 'w' }, old: null },
      { record: { u: 'u2' }, old: { kind: 'key', record: { u: 'u' } } },
      { record: { id: 9 }, old: null },
      { kind: 'delete', old: { kind: 'key', record: { u: 'u2' } } },
    ]);
  });

  it('has full old rows, and fills what was not sent from them', () => {
    const [first, second] = [
      { id: 1, b: null, big: LARGE.y },
      { id: 1, b: 'b', big: LARGE.y },
    ];
    expect(rowsOf('public.full_row')).toMatchObject([
      { record: first },
      {
        record: second,
        unchanged: [],
        old: { kind: 'full', record: first },
      },
      {
        record: { ...second, id: 2 },
        unchanged: [],
        old: { kind: 'full', record: second },
      },
      { old: { kind: 'full', record: { ...second, id: 2 } } },
    ]);
  });

  it('has large keys, dropped columns, and no columns', () => {
    expect(rowsOf('public.k')).toMatchObject([
      { record: { id: LARGE.k, v: 1 } },
      { record: { id: LARGE.k, v: 2 }, unchanged: [] },
      { old: { kind: 'key', record: { id: LARGE.k } } },
    ]);
    expect(rowsOf('public.dropped')).toMatchObject([
      { record: { id: 1, v: 'v' } },
    ]);
    expect(rowsOf('public.z')).toMatchObject([{ record: {} }]);
  });

  it('has generated columns that are not delivered', () => {
    const [insert] = rowsOf('public.generated');
    expect(insert).toHaveProperty('record', { id: 1 });
  });

  it('has values of every kind', () => {
    expect(rowsOf('public.n')[0]).toMatchObject({
      record: {
        b: true,
        i2: -32768,
        i8: '9223372036854775807',
        num: '1.10',
        bytes: Buffer.from('deadbeef00', 'hex'),
        s: Buffer.from('cafe', 'hex'),
        ints: [1, null, 3],
        bools: [true, false],
      },
    });
  });

  it('has truncations, those of partitions too', () => {
    const truncated = messages.flatMap((message) =>
      message.kind === 'truncate'
        ? message.relations.map(({ name, columns }) => [name, columns.length])
        : [],
    );
    expect(truncated).toEqual([
      ['public.ta', 1],
      ['public.tb', 2],
      ['public.ta', 1],
      ['public.tb', 2],
      ['public.parts_low', 2],
      ['public.parts_high', 2],
    ]);
  });

  it('has an origin', () => {
    expect(messages.filter(({ kind }) => kind === 'origin')).toEqual([
      { kind: 'origin', lsn: parseLsn('16/B374D848'), name: 'elsewhere' },
    ]);
  });

  it('has columns that came and went within a transaction', () => {
    expect(rowsOf('public.t').slice(8)).toMatchObject([
      { record: { id: 10, v: 'a', big: 's', m: 'sad', f: null } },
      { record: { id: 11, v: 'a', e: 4 } },
      { record: { id: 11, big: 's', m: 'sad', f: null, e: 5 } },
    ]);
  });

  it('has full old rows and keys where the identity changed within a transaction', () => {
    expect(rowsOf('public.i').slice(5)).toMatchObject([
      { record: { id: 3, u: 'a', v: 'b' } },
      { old: { kind: 'full', record: { id: 3, u: 'a', v: 'b' } } },
      { record: { v: 'q2' }, old: null },
      { old: { kind: 'key', record: { id: 3 } } },
    ]);
  });

  it('has no message of which a part is a message', () => {
    const tampered = decoding();
    for (const frame of FRAMES) {
      const length = Math.floor(frame.length * 0.9);
      if (tampered.decode(frame).kind === 'aside') continue;
      expect(tampered.decode(frame.subarray(0, length))).toMatchObject({
        kind: 'fault',
        code: 'decode_failure',
      });
    }
  });

  it('has no message that makes a decoder throw when a bit of it is flipped', () => {
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
