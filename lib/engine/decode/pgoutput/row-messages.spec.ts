import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  deleteFrame,
  type FrameRelation,
  insertFrame,
  relationFrame,
  UNCHANGED,
  updateFrame,
} from '../../../../test/support/pgoutput-frames.js';
import type { TypesOption } from '../../options/pipeline-options.js';
import { TypeTable } from '../../values/type-table.js';
import { PgoutputDecoder } from './pgoutput-decoder.js';

const KEYED: FrameRelation = {
  oid: 1,
  columns: [
    { name: 'id', typeOid: 23, key: true },
    { name: 'v' },
    { name: 'big' },
  ],
};
const FULL: FrameRelation = { ...KEYED, identity: 'f' };

function announced(
  relation: FrameRelation,
  types: TypesOption = 'exact',
): PgoutputDecoder {
  const decoder = new PgoutputDecoder(new TypeTable(types));
  decoder.decode(relationFrame(relation));
  return decoder;
}

describe('insert', () => {
  it('reads the row of a relation above 2^31 with parsed values (M22)', () => {
    const oid = 3_000_000_000;
    const decoder = announced({ ...KEYED, oid });
    expect(decoder.decode(insertFrame(oid, ['7', 'é', 'x']))).toMatchObject({
      kind: 'insert',
      relation: { oid, name: 'public.t' },
      record: { id: 7, v: 'é', big: 'x' },
    });
  });

  it('tells NULL from an empty string, and JSON null from both (M08, M09)', () => {
    const decoder = announced({
      oid: 1,
      columns: [
        { name: 'a' },
        { name: 'b' },
        { name: 'j', typeOid: 3802 },
        { name: 'k', typeOid: 3802 },
      ],
    });
    expect(decoder.decode(insertFrame(1, [null, '', 'null', null]))).toEqual(
      expect.objectContaining({
        record: { a: null, b: '', j: 'null', k: null },
      }),
    );
  });

  it('reads a table without columns (N06)', () => {
    const decoder = announced({ oid: 1, columns: [] });
    expect(decoder.decode(insertFrame(1, []))).toMatchObject({
      kind: 'insert',
      record: {},
    });
  });

  it('reads 1,600 columns', () => {
    const names = Array.from({ length: 1600 }, (_, i) => `c${i}`);
    const decoder = announced({
      oid: 1,
      columns: names.map((name) => ({ name })),
    });
    expect(decoder.decode(insertFrame(1, names))).toMatchObject({
      record: Object.fromEntries(names.map((name) => [name, name])),
    });
  });

  it('takes names such as __proto__ as plain data of a plain object', () => {
    const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty'];
    const decoder = announced({
      oid: 1,
      columns: names.map((name) => ({ name })),
    });
    const message = decoder.decode(insertFrame(1, ['{}', '1', '2', '3']));
    if (message.kind !== 'insert') throw new Error(message.kind);
    expect(Object.entries(message.record)).toEqual([
      ['__proto__', '{}'],
      ['constructor', '1'],
      ['toString', '2'],
      ['hasOwnProperty', '3'],
    ]);
    expect(Object.getPrototypeOf(message.record)).toBe(Object.prototype);
    expect(
      Object.getOwnPropertyDescriptor(message.record, '__proto__'),
    ).toEqual({
      value: '{}',
      configurable: true,
      enumerable: true,
      writable: true,
    });
  });

  it('keeps nothing that refers to the reused buffer (D07)', () => {
    const decoder = announced({
      oid: 1,
      columns: [{ name: 't' }, { name: 'b', typeOid: 17 }],
    });
    const payload = insertFrame(1, ['a text that is long enough', '\\x01ff']);
    const message = decoder.decode(payload);
    payload.fill(0x21);
    decoder.decode(insertFrame(1, ['another text, long enough', '\\x0000']));
    expect(message).toMatchObject({
      record: { t: 'a text that is long enough', b: Buffer.of(1, 0xff) },
    });
  });

  it('keeps every text, short or long, of any characters, in small and large rows', () => {
    const columns = [{ name: 'a' }, { name: 'b' }, { name: 'c' }];
    const decoder = announced({ oid: 1, columns });
    const text = fc.string({ unit: 'binary', maxLength: 16 });
    fc.assert(
      fc.property(text, text, fc.nat(6000), (a, b, size) => {
        const c = 'é'.repeat(size);
        expect(decoder.decode(insertFrame(1, [a, b, c]))).toMatchObject({
          record: { a, b, c },
        });
      }),
    );
  });

  it('keeps every text among others, wherever it lies in the row and whatever byte of it is not ASCII', () => {
    const text = fc
      .tuple(fc.nat(300), fc.nat(299), fc.constantFrom('', 'é', '€', '😀'))
      .map(([size, at, other]) => {
        const ascii = 'abcdefghij'.repeat(30).slice(0, size);
        return ascii.slice(0, at) + other + ascii.slice(at);
      });
    fc.assert(
      fc.property(fc.array(text, { maxLength: 12 }), (values) => {
        const names = values.map((_, i) => `c${i}`);
        const decoder = announced({
          oid: 1,
          columns: names.map((name) => ({ name })),
        });
        expect(decoder.decode(insertFrame(1, values))).toMatchObject({
          record: Object.fromEntries(names.map((name, i) => [name, values[i]])),
        });
      }),
    );
  });

  it('reads a byte that is no UTF-8 as a replacement character, wherever it lies', () => {
    const decoder = announced({ oid: 1, columns: [{ name: 'v' }] });
    const payload = insertFrame(1, ['0123456789']);
    for (let at = payload.length - 10; at < payload.length; at++) {
      const broken = Buffer.from(payload);
      broken[at] = 0xff;
      expect(decoder.decode(broken)).toMatchObject({
        record: { v: broken.toString('utf8', payload.length - 10) },
      });
    }
  });

  it('refuses a value that was not sent: there is no row to leave it alone in', () => {
    expect(
      announced(KEYED).decode(insertFrame(1, ['1', 'secret', UNCHANGED])),
    ).toStrictEqual({
      kind: 'fault',
      code: 'insert_incomplete',
      detail: 'insert: column "big" of public.t came without its value',
    });
  });
});

describe('update', () => {
  it('has no old row under the default identity', () => {
    expect(
      announced(KEYED).decode(updateFrame(1, ['1', 'new', null])),
    ).toMatchObject({
      kind: 'update',
      record: { id: 1, v: 'new', big: null },
      unchanged: [],
      old: null,
    });
  });

  it('names unchanged TOAST and leaves it out of the record (L01)', () => {
    const message = announced(KEYED).decode(
      updateFrame(1, ['1', UNCHANGED, UNCHANGED]),
    );
    expect(message).toMatchObject({ unchanged: ['v', 'big'], old: null });
    expect(message).toHaveProperty('record', { id: 1 });
  });

  it('keeps only key columns of a key (O03)', () => {
    const message = announced(KEYED).decode(
      updateFrame(1, ['2', 'v', UNCHANGED], {
        kind: 'K',
        values: ['1', null, null],
      }),
    );
    expect(message).toMatchObject({ unchanged: ['big'] });
    expect(message).toHaveProperty('record', { id: 2, v: 'v' });
    expect(message).toHaveProperty('old', { kind: 'key', record: { id: 1 } });
  });

  it('takes an unchanged key column from the key', () => {
    const message = announced(KEYED).decode(
      updateFrame(1, [UNCHANGED, 'v', UNCHANGED], {
        kind: 'K',
        values: ['1', null, null],
      }),
    );
    expect(message).toMatchObject({ unchanged: ['big'] });
    expect(message).toHaveProperty('record', { id: 1, v: 'v' });
  });

  it('keeps all columns of a key when none is flagged', () => {
    const columns = [{ name: 'a' }, { name: 'b' }];
    const message = announced({ oid: 1, columns }).decode(
      updateFrame(1, ['1', UNCHANGED], { kind: 'K', values: ['0', null] }),
    );
    expect(message).toHaveProperty('record', { a: '1' });
    expect(message).toMatchObject({
      unchanged: ['b'],
      old: { kind: 'key', record: { a: '0', b: null } },
    });
  });

  it('keeps the full old row, NULLs too, and fills what was not sent (L03, O05)', () => {
    expect(
      announced(FULL).decode(
        updateFrame(1, ['1', 'new', UNCHANGED], {
          kind: 'O',
          values: ['1', null, 'large'],
        }),
      ),
    ).toMatchObject({
      record: { id: 1, v: 'new', big: 'large' },
      unchanged: [],
      old: { kind: 'full', record: { id: 1, v: null, big: 'large' } },
    });
  });

  it('fills a column named __proto__ as well', () => {
    const columns = [{ name: '__proto__' }];
    const message = announced({ oid: 1, identity: 'f', columns }).decode(
      updateFrame(1, [UNCHANGED], { kind: 'O', values: ['x'] }),
    );
    if (message.kind !== 'update') throw new Error(message.kind);
    expect(Object.entries(message.record)).toEqual([['__proto__', 'x']]);
  });

  it('follows an identity that changes in mid-stream (O03)', () => {
    const decoder = announced(KEYED);
    const kinds = [
      decoder.decode(updateFrame(1, ['1', 'b', ''])),
      decoder.decode(relationFrame(FULL)),
      decoder.decode(
        updateFrame(1, ['1', 'c', ''], { kind: 'O', values: ['1', 'b', ''] }),
      ),
      decoder.decode(deleteFrame(1, 'O', ['1', 'c', ''])),
      decoder.decode(relationFrame(KEYED)),
      decoder.decode(deleteFrame(1, 'K', ['2', null, null])),
    ].flatMap((read) => ('old' in read ? [read.old] : []));
    expect(kinds).toStrictEqual([
      null,
      { kind: 'full', record: { id: 1, v: 'b', big: '' } },
      { kind: 'full', record: { id: 1, v: 'c', big: '' } },
      { kind: 'key', record: { id: 2 } },
    ]);
  });
});

describe('delete', () => {
  it.each(['d', 'i'])(
    'reads a key under the replica identity %s',
    (identity) => {
      const decoder = announced({ ...KEYED, identity });
      expect(
        decoder.decode(deleteFrame(1, 'K', ['1', null, null])),
      ).toHaveProperty('old', { kind: 'key', record: { id: 1 } });
    },
  );

  it('reads a full row without primary key and with NULLs (L05, O05)', () => {
    const columns = [{ name: 'a', typeOid: 23 }, { name: 'b' }];
    const decoder = announced({ oid: 1, identity: 'f', columns });
    expect(
      decoder.decode(deleteFrame(1, 'O', [null, 'y'.repeat(100_000)])),
    ).toHaveProperty('old', {
      kind: 'full',
      record: { a: null, b: 'y'.repeat(100_000) },
    });
  });
});

describe('what is no row', () => {
  const insert = insertFrame(1, ['1', 'secret', null]);
  const patched = (offset: number, ...bytes: number[]) => {
    const copy = Buffer.from(insert);
    copy.set(bytes, offset);
    return copy;
  };

  it.each([
    ['another tuple tag', patched(5, 0x58), 'no new tuple'],
    [
      'fewer columns than announced',
      insertFrame(1, ['1', '2']),
      'number of columns differs from the announced table',
    ],
    [
      'more columns than announced',
      insertFrame(1, ['1', '2', '3', '4']),
      'number of columns differs from the announced table',
    ],
    [
      'a negative number of columns',
      patched(6, 0xff, 0xff),
      'number of columns differs from the announced table',
    ],
    ['a negative length', patched(9, 0xff), 'negative length'],
    ['a length beyond the end', patched(9, 0x7f), 'ends early'],
    [
      'a binary value',
      insertFrame(1, ['1', Buffer.of(1), null]),
      'unknown kind of column value',
    ],
    ['an unknown kind', patched(8, 0x78), 'unknown kind of column value'],
    [
      'bytes left over',
      Buffer.concat([insert, Buffer.of(0)]),
      'bytes left over',
    ],
  ])('refuses %s', (_, frame, detail) => {
    expect(announced(KEYED).decode(frame)).toStrictEqual({
      kind: 'fault',
      code: 'decode_failure',
      detail: `insert: ${detail}`,
    });
  });

  it('refuses a left-out column of a key that is neither text nor NULL', () => {
    expect(
      announced(KEYED).decode(deleteFrame(1, 'K', ['1', Buffer.of(1), null])),
    ).toMatchObject({ detail: 'delete: unknown kind of column value' });
  });

  it('refuses a delete without old row', () => {
    const frame = insertFrame(1, ['1', '2', '3']);
    frame[0] = 0x44;
    expect(announced(KEYED).decode(frame)).toMatchObject({
      detail: 'delete: no old tuple',
    });
  });

  it('refuses an update without new row', () => {
    const frame = deleteFrame(1, 'K', ['1', null, null]);
    frame[0] = 0x55;
    expect(announced(KEYED).decode(frame)).toMatchObject({
      detail: 'update: ends early',
    });
  });

  it('refuses a row of a relation that was never announced', () => {
    expect(announced(KEYED).decode(insertFrame(2, []))).toStrictEqual({
      kind: 'fault',
      code: 'protocol_violation',
      detail: 'insert: table 2 was never announced',
    });
  });

  it.each<[unknown, string]>([
    [new RangeError('secret'), 'RangeError'],
    ['secret', 'string'],
  ])(
    'names column and class when a parser throws, not the text',
    (thrown, shown) => {
      const decoder = announced(KEYED, {
        getTypeParser: () => () => {
          throw thrown;
        },
      });
      expect(decoder.decode(insert)).toStrictEqual({
        kind: 'fault',
        code: 'decode_failure',
        detail: `insert: the parser of column "id" of public.t threw ${shown}`,
      });
    },
  );
});
