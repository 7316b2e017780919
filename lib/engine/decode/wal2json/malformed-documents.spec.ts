import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  beginDocument,
  commitDocument,
  deleteDocument,
  insertDocument,
  messageDocument,
  truncateDocument,
  updateDocument,
} from '../../../../test/support/wal2json-documents.js';
import {
  catalogTable,
  Wal2jsonDecoding,
} from '../../../../test/support/wal2json-decoding.js';
import type { OldRow, Row } from '../../model/change.js';
import type { Relation } from '../../model/relation.js';
import type { Decoded } from '../decoder.js';

const KEYED = catalogTable(
  [
    { name: 'id', typeOid: 23 },
    'v',
    { name: '__proto__', typeOid: 17 },
    { name: 'b', typeOid: 16 },
    { name: 'm', typeOid: 20_010 },
  ],
  { generated: ['g'] },
);
const FULL = catalogTable(['a', 'b'], {
  oid: 20_001,
  table: 'full',
  replicaIdentity: 'full',
});
const BARE = catalogTable([], { oid: 20_002, table: 'bare' });

const ID = { name: 'id', type: 'integer', typeOid: 23, value: '1' };
const REST = [
  { name: 'v', value: 'v"\n\\é' },
  { name: '__proto__', type: 'bytea', typeOid: 17, value: '00ff' },
  { name: 'b', type: 'boolean', typeOid: 16, value: true },
  { name: 'm', type: 'mood', typeOid: 20_010, value: 'sad' },
];
const GENERATED = { name: 'g', type: 'integer', typeOid: 23, value: '2' };
const OLD = [{ name: 'a' }, { name: 'b', value: 'b' }];
const QUOTED = Buffer.from(
  insertDocument({ columns: [ID, ...REST] })
    .toString()
    .replace('"type":"mood"', '"type":"S"."mo""od"'),
);

const DOCUMENTS = [
  beginDocument(),
  commitDocument(),
  messageDocument('p', 'content'),
  messageDocument('p', 'content', false),
  insertDocument({ columns: [ID, ...REST, GENERATED] }),
  QUOTED,
  insertDocument({ table: 'bare', columns: [], key: [] }),
  updateDocument({ columns: [ID, ...REST.slice(1)], identity: [ID] }),
  updateDocument({
    columns: [{ ...ID, value: '2' }, ...REST],
    identity: [ID],
  }),
  updateDocument({
    table: 'full',
    columns: [{ name: 'a', value: 'é' }],
    identity: OLD,
    key: [],
  }),
  deleteDocument({ identity: [ID] }),
  deleteDocument({ table: 'full', identity: OLD, key: [] }),
  truncateDocument(),
];

function decoding(): Wal2jsonDecoding {
  const fresh = new Wal2jsonDecoding([KEYED, FULL, BARE]);
  for (const table of ['t', 'full', 'bare'])
    fresh.decode(truncateDocument(table));
  return fresh;
}

function namesOf(relation: Relation): string[] {
  return relation.columns.map(({ name }) => name);
}

function oldNamesOf(relation: Relation, old: OldRow<Row>): string[] {
  return old.kind === 'full'
    ? namesOf(relation)
    : relation.columns.flatMap(({ name, key }) => (key ? [name] : []));
}

/** Whatever is not refused is whole: each row has the columns of its table, no more and no fewer. */
function expectFaultOrWhole(decoded: Decoded): void {
  if (decoded.kind === 'insert' || decoded.kind === 'update') {
    const unchanged = decoded.kind === 'update' ? decoded.unchanged : [];
    expect([...Object.keys(decoded.record), ...unchanged].toSorted()).toEqual(
      namesOf(decoded.relation).toSorted(),
    );
  }
  if (
    decoded.kind === 'delete' ||
    (decoded.kind === 'update' && decoded.old !== null)
  ) {
    const { relation, old } = decoded;
    if (old !== null)
      expect(Object.keys(old.record).toSorted()).toEqual(
        oldNamesOf(relation, old).toSorted(),
      );
  }
  if (decoded.kind === 'fault') expect(decoded.detail).not.toMatch(/sad|00ff/);
}

describe('malformed documents', () => {
  it('are none of those of this file', () => {
    const announcing = decoding();
    for (const whole of DOCUMENTS) {
      const decoded = announcing.decode(whole);
      expect(decoded).not.toMatchObject({ kind: 'fault' });
      expectFaultOrWhole(decoded);
    }
    expect(announcing.announced).toHaveLength(3);
  });

  it('are the beginnings of all of them', () => {
    for (const whole of DOCUMENTS) {
      for (let length = 0; length < whole.length; length++) {
        const decoded = decoding().decode(whole.subarray(0, length));
        expect(decoded.kind).toBe('fault');
      }
    }
  });

  it('are all of them with something behind', () => {
    for (const whole of DOCUMENTS) {
      for (const more of [' ', '\0', '}', '{}', whole])
        expect(
          decoding().decode(Buffer.concat([whole, Buffer.from(more)])).kind,
        ).toBe('fault');
    }
  });

  it('are all of them with a member twice, or in another place', () => {
    for (const whole of DOCUMENTS) {
      const text = whole.toString();
      for (const [member] of text.matchAll(/"[a-z]+":(?:"[^"]*"|\d+),/g)) {
        expect(
          decoding().decode(Buffer.from(text.replace(member, member + member)))
            .kind,
        ).toBe('fault');
        expect(
          decoding().decode(
            Buffer.from(
              `${text.replace(member, '').slice(0, -1)},${member.slice(0, -1)}}`,
            ),
          ).kind,
        ).toBe('fault');
      }
    }
  });

  it('are refused or whole with flipped bits', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...DOCUMENTS),
        fc.array(fc.nat(), { minLength: 1, maxLength: 3 }),
        (whole, bits) => {
          const flipped = Buffer.from(whole);
          for (const bit of bits) {
            const at = (bit >> 3) % flipped.length;
            flipped.writeUInt8(flipped.readUInt8(at) ^ (1 << (bit & 7)), at);
          }
          const used = decoding();
          expectFaultOrWhole(used.decode(flipped));
          // What they said of tables is not kept in a way that spoils others.
          for (const other of DOCUMENTS) expectFaultOrWhole(used.decode(other));
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it('are refused or whole when cut out and put together', () => {
    const piece = fc
      .tuple(fc.constantFrom(...DOCUMENTS), fc.nat(), fc.nat())
      .map(([whole, from, count]) =>
        whole.subarray(
          from % whole.length,
          (from % whole.length) + (count % 90),
        ),
      );
    fc.assert(
      fc.property(
        fc.constantFrom(...DOCUMENTS),
        fc.nat(),
        fc.nat({ max: 60 }),
        piece,
        (whole, from, count, inserted) => {
          const at = from % whole.length;
          expectFaultOrWhole(
            decoding().decode(
              Buffer.concat([
                whole.subarray(0, at),
                inserted,
                whole.subarray(at + count),
              ]),
            ),
          );
        },
      ),
      { numRuns: 2_000 },
    );
  });
});

describe('any text', () => {
  it('is a value that comes back as it was', () => {
    const used = new Wal2jsonDecoding([catalogTable(['id', 'v'])]);
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', maxLength: 60 }),
        fc.constantFrom(1, 200),
        (text, times) => {
          // PostgreSQL has no zero in a text.
          const value = text.replaceAll('\0', '').repeat(times);
          expect(
            used.decode(
              insertDocument({
                columns: [
                  { name: 'id', value },
                  { name: 'v', value },
                ],
              }),
            ),
          ).toMatchObject({ record: { id: value, v: value } });
        },
      ),
      { numRuns: 1_000 },
    );
  });
});

it.each([
  ['ASCII', 'x'.repeat(1_000_000), 25],
  ['other letters', 'é'.repeat(500_000), 25],
  ['escapes', '"\\\n'.repeat(170_000), 25],
  ['control characters', '\u0001\\udada'.repeat(80_000), 25],
  ['bytes', '00ff'.repeat(250_000), 17],
])('reads 1 MB of %s whole', (_, value, typeOid) => {
  const used = new Wal2jsonDecoding([catalogTable([{ name: 'v', typeOid }])]);
  const row = insertDocument({ columns: [{ name: 'v', typeOid, value }] });
  const decoded = used.decode(row);
  const read = decoded.kind === 'insert' ? decoded.record['v'] : null;
  // A comparison byte by byte takes half a minute.
  expect(Buffer.isBuffer(read) ? read.toString('hex') : read).toBe(value);
});
