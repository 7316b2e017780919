import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type CatalogDecoding,
  catalogTable,
} from '../../../../test/support/catalog-decoding.js';
import { pglogicalDecoding } from '../../../../test/support/pglogical-decoding.js';
import {
  deleteFrame,
  insertFrame,
  relationFrame,
  UNCHANGED,
  updateFrame,
} from '../../../../test/support/pglogical-frames.js';
import type { ReplicaIdentity } from '../../model/relation.js';

const COLUMNS = ['id:23', 'v', 'big'];

/** A table with a key, unless its identity is another one. */
function announced(
  replicaIdentity: ReplicaIdentity = 'default',
): CatalogDecoding {
  const key = replicaIdentity === 'default' || replicaIdentity === 'index';
  const columns = key ? COLUMNS.with(0, '*id:23') : COLUMNS;
  const decoding = pglogicalDecoding([
    catalogTable(1, columns, { replicaIdentity }),
  ]);
  decoding.decode(
    relationFrame({ oid: 1, columns: [key ? '*id' : 'id', 'v', 'big'] }),
  );
  return decoding;
}

describe('insert', () => {
  it('reads a row with parsed values, and NULL beside an empty string', () => {
    expect(announced().decode(insertFrame(1, ['7', '', null]))).toMatchObject({
      kind: 'insert',
      relation: { oid: 1, name: 'public.t' },
      record: { id: 7, v: '', big: null },
    });
  });

  it('carries the relation that was announced, the same object, until the next announcement', () => {
    const decoding = announced();
    const frame = relationFrame({ oid: 1, columns: ['*id', 'v', 'big'] });
    const message = decoding.decode(frame);
    if (message.kind !== 'relation') throw new Error(message.kind);
    const insert = decoding.decode(insertFrame(1, ['1', null, null]));
    if (insert.kind !== 'insert') throw new Error(insert.kind);
    expect(insert.relation).toBe(message.relation);
  });

  it('refuses a row that lacks a value', () => {
    expect(
      announced().decode(insertFrame(1, ['7', 'v', UNCHANGED])),
    ).toStrictEqual({
      kind: 'fault',
      code: 'insert_incomplete',
      detail: 'insert: column "big" of public.t came without its value',
    });
  });

  it('refuses a row of a table that was never announced', () => {
    expect(announced().decode(insertFrame(2, []))).toStrictEqual({
      kind: 'fault',
      code: 'protocol_violation',
      detail: 'insert: table 2 was never announced',
    });
  });

  it('refuses binary values, which nobody asked for', () => {
    expect(
      announced().decode(insertFrame(1, [Buffer.of(0, 0, 0, 7), null, null])),
    ).toStrictEqual({
      kind: 'fault',
      code: 'decode_failure',
      detail: 'insert: unknown kind of column value',
    });
  });

  it.each([
    ['fewer', ['1']],
    ['more', ['1', '2', '3', '4']],
  ])('refuses %s columns than were announced', (_, values) => {
    expect(announced().decode(insertFrame(1, values))).toStrictEqual({
      kind: 'fault',
      code: 'decode_failure',
      detail: 'insert: number of columns differs from the announced table',
    });
  });

  it.each([
    ['that is not there', 'NT\0\x01t\0\0\0\x011'],
    ['that is no zero', 'NT\0\x01t\0\0\0\x0212'],
    ['of no byte', 'NT\0\x01t\0\0\0\0'],
  ])('refuses a text with an end %s', (_, tuple) => {
    const decoding = pglogicalDecoding([catalogTable(1, ['v'])]);
    decoding.decode(relationFrame({ oid: 1, columns: ['v'] }));
    const frame = Buffer.concat([
      Buffer.from('I\0\0\0\0\x01'),
      Buffer.from(tuple),
    ]);
    expect(decoding.decode(frame)).toStrictEqual({
      kind: 'fault',
      code: 'decode_failure',
      detail: 'insert: text without end',
    });
  });

  it('refuses flags, of which none is defined', () => {
    const frame = insertFrame(1, ['7', 'v', null]);
    frame.writeUInt8(1, 1);
    expect(announced().decode(frame)).toMatchObject({
      detail: 'insert: unknown flags',
    });
  });

  it('takes names such as __proto__ as plain data', () => {
    const names = ['__proto__', 'constructor'];
    const decoding = pglogicalDecoding([catalogTable(1, names)]);
    decoding.decode(relationFrame({ oid: 1, columns: names }));
    const insert = decoding.decode(insertFrame(1, ['a', 'b']));
    if (insert.kind !== 'insert') throw new Error(insert.kind);
    expect(Object.entries(insert.record)).toEqual([
      ['__proto__', 'a'],
      ['constructor', 'b'],
    ]);
  });

  it('keeps every text, and nothing of the reused buffer', () => {
    const decoding = announced();
    const text = fc
      .string({ unit: 'binary', maxLength: 100 })
      .map((any) => any.replaceAll('\0', ''));
    fc.assert(
      fc.property(text, text, (v, big) => {
        const frame = insertFrame(1, ['1', v, big]);
        const insert = decoding.decode(frame);
        frame.fill(0x21);
        expect(insert).toMatchObject({ record: { id: 1, v, big } });
      }),
    );
  });
});

describe('update', () => {
  it('has no old row when the key stayed', () => {
    expect(
      announced().decode(updateFrame(1, ['1', 'w', UNCHANGED])),
    ).toMatchObject({
      kind: 'update',
      record: { id: 1, v: 'w' },
      unchanged: ['big'],
      old: null,
    });
  });

  it.each(['default', 'index'] as const)(
    'has the old key when the key changed: %s',
    (identity) => {
      const update = announced(identity).decode(
        updateFrame(1, ['2', 'v', UNCHANGED], ['1', null, null]),
      );
      expect(update).toMatchObject({
        record: { id: 2, v: 'v' },
        unchanged: ['big'],
      });
      expect(update).toHaveProperty('old', { kind: 'key', record: { id: 1 } });
    },
  );

  it('has the full old row under FULL, and takes from it what was not sent', () => {
    expect(
      announced('full').decode(
        updateFrame(1, ['1', 'w', UNCHANGED], ['1', null, 'large']),
      ),
    ).toMatchObject({
      record: { id: 1, v: 'w', big: 'large' },
      unchanged: [],
      old: { kind: 'full', record: { id: 1, v: null, big: 'large' } },
    });
  });

  it('has no old row under NOTHING', () => {
    expect(
      announced('nothing').decode(updateFrame(1, ['1', 'w', 'b'])),
    ).toMatchObject({ kind: 'update', old: null });
  });
});

it('refuses an update without a new row', () => {
  const frame = updateFrame(1, ['1', 'w', 'b']);
  frame.write('O', 6);
  expect(announced().decode(frame)).toStrictEqual({
    kind: 'fault',
    code: 'decode_failure',
    detail: 'update: no new tuple',
  });
});

describe('delete', () => {
  it('has the key alone', () => {
    const frame = deleteFrame(1, ['1', null, null]);
    expect(announced().decode(frame)).toHaveProperty('old', {
      kind: 'key',
      record: { id: 1 },
    });
  });

  it('has the full old row under FULL', () => {
    const frame = deleteFrame(1, ['1', null, 'large']);
    expect(announced('full').decode(frame)).toHaveProperty('old', {
      kind: 'full',
      record: { id: 1, v: null, big: 'large' },
    });
  });

  it('has no column that is omitted, though it was the key', () => {
    const decoding = pglogicalDecoding([
      catalogTable(1, ['v'], { generated: ['twice'] }),
    ]);
    decoding.decode(relationFrame({ oid: 1, columns: ['v', '*twice'] }));
    expect(decoding.decode(deleteFrame(1, [null, '4']))).toHaveProperty('old', {
      kind: 'key',
      record: { v: null },
    });
  });

  it('refuses an old row with the tag of a new one', () => {
    const frame = deleteFrame(1, ['1', null, null]);
    frame.write('N', 6);
    expect(announced().decode(frame)).toStrictEqual({
      kind: 'fault',
      code: 'decode_failure',
      detail: 'delete: no old tuple',
    });
  });
});

describe('an identity that changed since the row was written', () => {
  it('does not make a full row with NULLs of a key: the catalog says FULL, the message has a key', () => {
    const decoding = pglogicalDecoding([
      catalogTable(1, COLUMNS, { replicaIdentity: 'full' }),
    ]);
    decoding.decode(relationFrame({ oid: 1, columns: ['*id', 'v', 'big'] }));
    const frame = deleteFrame(1, ['1', null, null]);
    expect(decoding.decode(frame)).toHaveProperty('old', {
      kind: 'key',
      record: { id: 1 },
    });
  });

  it('does not make a key of a full row: the catalog has a key, the message none', () => {
    const decoding = pglogicalDecoding([
      catalogTable(1, COLUMNS.with(0, '*id:23')),
    ]);
    decoding.decode(relationFrame({ oid: 1, columns: ['id', 'v', 'big'] }));
    const frame = deleteFrame(1, ['1', 'v', null]);
    expect(decoding.decode(frame)).toHaveProperty('old', {
      kind: 'full',
      record: { id: 1, v: 'v', big: null },
    });
  });
});
