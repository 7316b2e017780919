import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  beginFrame,
  commitFrame,
  deleteFrame,
  insertFrame,
  messageFrame,
  originFrame,
  relationFrame,
  truncateFrame,
  typeFrame,
  UNCHANGED,
  updateFrame,
} from '../../../../test/support/pgoutput-frames.js';
import type { OldRow, Row } from '../../model/change.js';
import type { Relation } from '../../model/relation.js';
import { TypeTable } from '../../values/type-table.js';
import type { Decoded } from '../decoder.js';
import { PgoutputDecoder } from './pgoutput-decoder.js';

const RELATIONS = [
  relationFrame({
    oid: 1,
    table: 'keyed',
    columns: [
      { name: 'id', typeOid: 23, key: true },
      { name: 'v' },
      { name: 'n', typeOid: 1007 },
      { name: '__proto__', typeOid: 17 },
    ],
  }),
  relationFrame({
    oid: 2,
    table: 'full',
    identity: 'f',
    columns: [{ name: 'a', typeOid: 1184 }, { name: 'b' }],
  }),
  relationFrame({ oid: 3, table: 'bare', columns: [] }),
];

const FRAMES = [
  ...RELATIONS,
  beginFrame(10n),
  commitFrame(10n, 20n),
  originFrame(1n, 'elsewhere'),
  typeFrame(20_000, 'public', 'mood'),
  insertFrame(1, ['1', 'v', '{1,NULL}', '\\x00']),
  insertFrame(2, [null, '']),
  insertFrame(3, []),
  updateFrame(1, ['1', UNCHANGED, '{}', null]),
  updateFrame(1, ['2', 'v', UNCHANGED, null], {
    kind: 'K',
    values: ['1', null, null, null],
  }),
  updateFrame(2, [null, UNCHANGED], {
    kind: 'O',
    values: ['2026-01-02 03:04:05.123456+00', 'b'],
  }),
  deleteFrame(1, 'K', ['1', null, null, null]),
  deleteFrame(2, 'O', [null, 'b']),
  deleteFrame(3, 'O', []),
  truncateFrame([1, 2, 3], 3),
  messageFrame({
    flags: 1,
    lsn: 5n,
    prefix: 'p',
    content: Buffer.from('content'),
  }),
];

function announced(): PgoutputDecoder {
  const decoder = new PgoutputDecoder(new TypeTable('exact'));
  for (const frame of RELATIONS) decoder.decode(frame);
  return decoder;
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
    const decoder = announced();
    for (const whole of FRAMES) {
      const decoded = decoder.decode(whole);
      expect(decoded.kind).not.toBe('fault');
      expectFaultOrWhole(decoded);
    }
  });

  it('refuses every beginning of every message', () => {
    for (const whole of FRAMES) {
      for (let length = 0; length < whole.length; length++) {
        expect(announced().decode(whole.subarray(0, length))).toMatchObject({
          kind: 'fault',
          code: 'decode_failure',
        });
      }
    }
  });

  it('refuses them in the same words when the message lies among others', () => {
    for (const whole of FRAMES) {
      for (const filler of [0, 1, 0x74]) {
        const among = Buffer.concat([
          Buffer.alloc(9, filler),
          whole,
          Buffer.alloc(300, filler),
        ]);
        for (let length = 0; length < whole.length; length++) {
          among.fill(filler, 9 + length, 9 + whole.length);
          expect(announced().decode(among, 9, 9 + length)).toEqual(
            announced().decode(whole.subarray(0, length)),
          );
          whole.copy(among, 9);
        }
        expect(announced().decode(among, 9, 9 + whole.length)).toEqual(
          announced().decode(whole),
        );
      }
    }
  });

  it('refuses every message that is followed by more', () => {
    for (const whole of FRAMES) {
      const longer = Buffer.concat([whole, Buffer.of(0)]);
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

  it('reads random bytes as a fault or a whole message', () => {
    const tag = fc.constantFrom(...Buffer.from('BCORYIUDTM'));
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
      insertFrame(1, ['1']).subarray(0, 6),
      updateFrame(1, ['1']).subarray(0, 6),
      deleteFrame(2, 'O', []).subarray(0, 6),
    );
    const value = fc.oneof(
      fc.constant(Buffer.from('n')),
      fc.constant(Buffer.from('u')),
      fc.constant(Buffer.from('t\0\0\0\x011')),
      fc.constant(Buffer.from('t\0\0\0\0')),
      fc.constant(Buffer.from('N\0\x04')),
      fc.uint8Array({ maxLength: 3 }).map((bytes) => Buffer.from(bytes)),
    );
    fc.assert(
      fc.property(
        start,
        fc.constantFrom(2, 4),
        fc.array(value, { maxLength: 9 }),
        (head, count, values) => {
          const payload = Buffer.concat([head, Buffer.of(0, count), ...values]);
          expectFaultOrWhole(announced().decode(payload));
        },
      ),
      { numRuns: 2_000 },
    );
  });
});
