import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type CatalogDecoding,
  catalogTable,
} from '../../../../test/support/catalog-decoding.js';
import { pglogicalDecoding } from '../../../../test/support/pglogical-decoding.js';
import {
  beginFrame,
  commitFrame,
  deleteFrame,
  insertFrame,
  originFrame,
  relationFrame,
  startupFrame,
  UNCHANGED,
  updateFrame,
} from '../../../../test/support/pglogical-frames.js';
import type { OldRow, Row } from '../../model/change.js';
import type { Relation } from '../../model/relation.js';
import type { Decoded } from '../decoder.js';

const RELATIONS = [
  relationFrame({
    oid: 1,
    table: 'keyed',
    columns: ['*id', 'v', 'twice', 'n', '__proto__'],
  }),
  relationFrame({ oid: 2, table: 'full', columns: ['a', 'b'] }),
  relationFrame({ oid: 3, table: 'bare', columns: [] }),
  relationFrame({
    oid: 4,
    schema: 'pglogical',
    table: 'queue',
    columns: ['message_type', 'message'],
  }),
];

const CATALOG = [
  catalogTable(1, ['*id:23', 'v', 'n:1007', '__proto__:17'], {
    table: 'keyed',
    generated: ['twice'],
  }),
  catalogTable(2, ['a:1184', 'b'], { table: 'full', replicaIdentity: 'full' }),
  catalogTable(3, [], { table: 'bare' }),
];

const FRAMES = [
  startupFrame(),
  ...RELATIONS,
  commitFrame(10n, 20n),
  originFrame(1n, 'elsewhere'),
  insertFrame(1, ['1', 'v', '2', '{1,NULL}', '\\x00']),
  insertFrame(2, [null, '']),
  insertFrame(3, []),
  insertFrame(4, ['T', '{"schema_name":"public","table_name":"full"}']),
  insertFrame(4, ['Q', '"select 1"']),
  updateFrame(1, ['1', UNCHANGED, null, '{}', null]),
  updateFrame(
    1,
    ['2', 'v', '4', UNCHANGED, null],
    ['1', null, null, null, null],
  ),
  updateFrame(2, [null, UNCHANGED], ['2026-01-02 03:04:05.123456+00', 'b']),
  deleteFrame(1, ['1', null, null, null, null]),
  deleteFrame(2, [null, 'b']),
  beginFrame(10n),
];

function announced(): CatalogDecoding {
  const decoding = pglogicalDecoding(CATALOG);
  for (const frame of RELATIONS) decoding.decode(frame);
  return decoding;
}

function namesOf(relation: Relation): string[] {
  return relation.columns.map(({ name }) => name);
}

function oldNamesOf(relation: Relation, old: OldRow<Row>): string[] {
  const keys = relation.columns.filter(({ key }) => key);
  return old.kind === 'key' && keys.length > 0
    ? keys.map(({ name }) => name)
    : namesOf(relation);
}

/** The columns of each row in the message, beside those that it must have. */
function columnsIn(decoded: Decoded): { found: string[]; wanted: string[] }[] {
  if (
    decoded.kind !== 'insert' &&
    decoded.kind !== 'update' &&
    decoded.kind !== 'delete'
  ) {
    return [];
  }
  const { relation } = decoded;
  const rows = [];
  if (decoded.kind !== 'delete') {
    const unchanged = decoded.kind === 'update' ? decoded.unchanged : [];
    const found = [...Object.keys(decoded.record), ...unchanged];
    rows.push({ found, wanted: namesOf(relation) });
  }
  if (decoded.kind !== 'insert' && decoded.old !== null) {
    const found = Object.keys(decoded.old.record);
    rows.push({ found, wanted: oldNamesOf(relation, decoded.old) });
  }
  return rows;
}

/** Whatever is not refused is whole: each row has the columns of its table, no more and no fewer. */
function expectFaultOrWhole(decoded: Decoded): void {
  for (const { found, wanted } of columnsIn(decoded)) {
    expect(found.toSorted()).toEqual(wanted.toSorted());
  }
  expect(decoded.kind === 'fault' ? decoded.detail : 'none').toMatch(
    /^[\w :"./]+$/,
  );
}

const frame = fc.constantFrom(...FRAMES);

describe('malformed input', () => {
  it('reads every frame of this file when it is whole', () => {
    const decoding = announced();
    for (const whole of FRAMES) {
      const decoded = decoding.decode(whole);
      expect(decoded.kind).not.toBe('fault');
      expectFaultOrWhole(decoded);
    }
  });

  it('refuses every beginning of every message but the startup message, whose end nothing marks', () => {
    for (const whole of FRAMES.slice(1)) {
      for (let length = 0; length < whole.length; length++) {
        expect(announced().decode(whole.subarray(0, length))).toMatchObject({
          kind: 'fault',
          code: 'decode_failure',
        });
      }
    }
  });

  it('reads no beginning of a message differently when it lies among others', () => {
    for (const whole of FRAMES) {
      const among = Buffer.concat([
        Buffer.alloc(9, 0x74),
        whole,
        Buffer.alloc(300),
      ]);
      for (let length = 0; length <= whole.length; length++) {
        const alone = announced().decoder.decode(whole.subarray(0, length));
        const decoded = announced().decoder.decode(among, 9, 9 + length);
        expect(comparable(decoded)).toEqual(comparable(alone));
      }
    }
  });

  it('refuses every message that is followed by more', () => {
    for (const whole of FRAMES) {
      const longer = Buffer.concat([whole, Buffer.of(1)]);
      expect(announced().decode(longer)).toMatchObject({
        kind: 'fault',
        code: 'decode_failure',
      });
    }
  });

  it('reads flipped bits as a fault or a whole message', () => {
    fc.assert(
      fc.property(
        frame,
        fc.array(fc.nat(), { minLength: 1, maxLength: 4 }),
        (whole, bits) => {
          const flipped = Buffer.from(whole);
          for (const bit of bits) {
            const at = (bit >> 3) % flipped.length;
            flipped.writeUInt8(flipped.readUInt8(at) ^ (1 << (bit & 7)), at);
          }
          expectFaultOrWhole(announced().decode(flipped));
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it('notices every flipped bit of what frames the values of a row', () => {
    const whole = insertFrame(1, ['1', 'v', null, null, null]);
    const values = new Set([15, 22]);
    for (let bit = 0; bit < whole.length * 8; bit++) {
      const at = bit >> 3;
      if (values.has(at)) continue;
      const flipped = Buffer.from(whole);
      flipped.writeUInt8(flipped.readUInt8(at) ^ (1 << (bit & 7)), at);
      expect(announced().decode(flipped)).not.toMatchObject({
        kind: 'insert',
        relation: { oid: 1 },
      });
    }
  });

  it('reads random bytes as a fault or a whole message', () => {
    const tag = fc.constantFrom(...Buffer.from('SBCORIUD'));
    fc.assert(
      fc.property(tag, fc.uint8Array({ maxLength: 60 }), (first, rest) => {
        const decoded = announced().decode(Buffer.of(first, ...rest));
        expectFaultOrWhole(decoded);
      }),
      { numRuns: 2_000 },
    );
  });

  it('reads random bytes behind a valid start of a row as a fault or a whole row', () => {
    const start = fc.constantFrom(
      insertFrame(1, []).subarray(0, 8),
      updateFrame(1, []).subarray(0, 8),
      deleteFrame(2, []).subarray(0, 8),
    );
    const value = fc.oneof(
      fc.constant(Buffer.from('n')),
      fc.constant(Buffer.from('u')),
      fc.constant(Buffer.from('t\0\0\0\x021\0')),
      fc.constant(Buffer.from('t\0\0\0\x01\0')),
      fc.constant(Buffer.from('NT\0\x05')),
      fc.uint8Array({ maxLength: 3 }).map((bytes) => Buffer.from(bytes)),
    );
    fc.assert(
      fc.property(
        start,
        fc.constantFrom(2, 5),
        fc.array(value, { maxLength: 11 }),
        (head, count, values) => {
          const payload = Buffer.concat([head, Buffer.of(0, count), ...values]);
          expectFaultOrWhole(announced().decode(payload));
        },
      ),
      { numRuns: 2_000 },
    );
  });
});

/** Two requests are alike though what takes their answers is not the same. */
function comparable(decoded: Decoded): unknown {
  return decoded.kind === 'table-needed'
    ? { kind: decoded.kind, name: decoded.name }
    : decoded;
}
