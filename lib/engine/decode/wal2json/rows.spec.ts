import { describe, expect, it } from 'vitest';
import {
  deleteDocument,
  type DocumentColumn,
  type DocumentValue,
  insertDocument,
  updateDocument,
} from '../../../../test/support/wal2json-documents.js';
import {
  catalogTable,
  Wal2jsonDecoding,
} from '../../../../test/support/wal2json-decoding.js';
import type { CatalogTable } from '../../model/relation.js';
import type { Decoded } from '../decoder.js';

function column(name: string, value: DocumentValue): DocumentColumn {
  return { name, value };
}

const [A, B] = [column('id', '1'), column('id', '2')];
const V = column('v', 'v');

function decode(bytes: Buffer, table: CatalogTable): Decoded {
  return new Wal2jsonDecoding([table]).decode(bytes);
}

describe('values', () => {
  const table = catalogTable(['id', { name: 'v', typeOid: 0 }]);

  function valueOf(value: DocumentValue, typeOid = 25, type = 'text'): unknown {
    const decoded = decode(
      insertDocument({ columns: [A, { name: 'v', type, typeOid, value }] }),
      table,
    );
    return decoded.kind === 'insert' ? decoded.record['v'] : decoded;
  }

  it.each([
    ['true', true, 16, 'boolean', true],
    ['false', false, 16, 'boolean', false],
    ['bytes', '00ff', 17, 'bytea', Buffer.of(0, 255)],
    ['no bytes', '', 17, 'bytea', Buffer.of()],
    ['a number', '12', 23, 'integer', 12],
    ['trailing zeros', '1.10', 1700, 'numeric', '1.10'],
    ['NaN', 'NaN', 1700, 'numeric', 'NaN'],
    ['infinity', '-Infinity', 701, 'double precision', -Infinity],
    ['text in quotes', 'null', 25, 'text', 'null'],
    ['a domain over boolean', 't', 20_001, 'd', 't'],
    ['NULL', null, 16, 'boolean', null],
    ['empty text', '', 25, 'text', ''],
  ])('are those of pgoutput: %s', (_, value, typeOid, type, expected) => {
    expect(valueOf(value, typeOid, type)).toStrictEqual(expected);
  });

  it.each([
    'é😀\u2028\u007f',
    '\ufffd',
    'quote " backslash \\ \\u0041 \\ud800',
    '\b\f\n\r\t\u0001\u001f',
    'x'.repeat(5_000),
    'é"'.repeat(5_000),
  ])('lose nothing of a text (%#)', (text) => {
    expect(valueOf(text)).toBe(text);
  });

  it.each([
    ['number', 1.5, 1700, 'came as other JSON than a string'],
    ['boolean', true, 25, 'came as other JSON than a string'],
    ['array', [1], 1007, 'came as other JSON than a string'],
    ['object', { a: 1 }, 3802, 'came as other JSON than a string'],
    ['text for a boolean', 't', 16, 'is no boolean'],
    ['bytes that are escaped', '\\000', 17, 'is not hexadecimal'],
  ])('are refused as %s', (_, value, typeOid, detail) => {
    expect(valueOf(value, typeOid)).toStrictEqual({
      kind: 'fault',
      code: 'decode_failure',
      detail: `insert: column "v" of public.t ${detail}`,
    });
  });

  it.each([
    ['no UTF-8', '\u00ff', 'string that is not UTF-8'],
    [
      'a half of a surrogate pair',
      '\\ud800',
      'escape that PostgreSQL does not write',
    ],
    ['a space', '\\u0020', 'escape that PostgreSQL does not write'],
    ['a line feed', '\n', 'control character in a string'],
    ['another escape', '\\x', 'SyntaxError'],
  ])('are refused with %s', (_, bytes, detail) => {
    const row = insertDocument({ columns: [A, column('v', '??????')] });
    row.write(bytes.padEnd(6), row.indexOf('??????'), 'latin1');
    expect(decode(row, table)).toStrictEqual({
      kind: 'fault',
      code: 'decode_failure',
      detail: `insert: ${detail}`,
    });
  });

  it('have names that are plain data', () => {
    const decoded = decode(
      insertDocument({ columns: [A, column('__proto__', 'p')] }),
      catalogTable(['id', '__proto__']),
    );
    expect(decoded.kind === 'insert' && Object.entries(decoded.record)).toEqual(
      [
        ['id', '1'],
        ['__proto__', 'p'],
      ],
    );
  });

  it('are refused twice', () => {
    expect(decode(insertDocument({ columns: [A, V, V] }), table)).toMatchObject(
      {
        kind: 'fault',
        detail: 'insert: column "v" of public.t came twice',
      },
    );
  });
});

describe('an update under a key', () => {
  const table = catalogTable(['id', 'v', 'big']);

  it('has no old row when the key is the same', () => {
    expect(
      decode(
        updateDocument({ columns: [A, V, column('big', null)], identity: [A] }),
        table,
      ),
    ).toMatchObject({
      record: { id: '1', v: 'v', big: null },
      unchanged: [],
      old: null,
    });
  });

  it('has the old key when it was changed', () => {
    expect(
      decode(updateDocument({ columns: [B, V], identity: [A] }), table),
    ).toMatchObject({
      record: { id: '2', v: 'v' },
      unchanged: ['big'],
      old: { kind: 'key', record: { id: '1' } },
    });
  });

  it('has the old key when a TOASTed one was left alone, and takes it from there', () => {
    const decoded = decode(
      updateDocument({ columns: [V], identity: [A] }),
      table,
    );
    expect(decoded).toMatchObject({
      record: { id: '1', v: 'v' },
      unchanged: ['big'],
      old: { kind: 'key', record: { id: '1' } },
    });
  });

  it('is refused when it lacks the key', () => {
    expect(decode(updateDocument({ columns: [A, V] }), table)).toStrictEqual({
      kind: 'fault',
      code: 'insert_incomplete',
      detail: 'update: column "id" of public.t came without its value',
    });
  });
});

describe('the full identity', () => {
  const table = catalogTable(['id', 'v', 'big'], { replicaIdentity: 'full' });
  const old = [A, column('v', null), column('big', 'big')];

  it('has the whole old row of an update, and what it leaves alone', () => {
    expect(
      decode(
        updateDocument({ columns: [A, V], identity: old, key: [] }),
        table,
      ),
    ).toMatchObject({
      record: { id: '1', v: 'v', big: 'big' },
      unchanged: [],
      old: { kind: 'full', record: { id: '1', v: null, big: 'big' } },
    });
  });

  it('has the whole old row of a delete', () => {
    expect(
      decode(deleteDocument({ identity: old, key: [] }), table),
    ).toMatchObject({
      kind: 'delete',
      old: { kind: 'full', record: { id: '1', v: null, big: 'big' } },
    });
  });
});

it('has the key alone of a delete', () => {
  expect(
    decode(
      deleteDocument({ identity: [column('b', 'y'), column('a', 'x')] }),
      catalogTable(['a', { name: 'b', key: true }, 'v'], {
        replicaIdentity: 'index',
      }),
    ),
  ).toMatchObject({ old: { kind: 'key', record: { a: 'x', b: 'y' } } });
});

it('passes generated columns over', () => {
  const decoding = new Wal2jsonDecoding([
    catalogTable(['id', 'v'], { generated: ['g'], replicaIdentity: 'full' }),
  ]);
  const row = [A, column('g', '7'), V];
  expect(
    decoding.decode(
      updateDocument({ columns: row, identity: row, key: ['g'] }),
    ),
  ).toMatchObject({
    record: { id: '1', v: 'v' },
    old: { kind: 'full', record: { id: '1', v: 'v' } },
  });
  expect(decoding.asked).toEqual([]);
  expect(decoding.announced).toHaveLength(1);
});

it('reads rows that lack columns by turns', () => {
  const decoding = new Wal2jsonDecoding([catalogTable(['id', 'v', 'w'])]);
  const W = column('w', 'w');
  const rows = [
    updateDocument({ columns: [A, W], identity: [A] }),
    updateDocument({ columns: [A, V], identity: [A] }),
    insertDocument({ columns: [A, V, W] }),
    updateDocument({ columns: [A], identity: [A] }),
  ];
  const unchanged = [...rows, ...rows].map((row) => {
    const decoded = decoding.decode(row);
    return decoded.kind === 'update' ? decoded.unchanged : decoded.kind;
  });
  const once = [['v'], ['w'], 'insert', ['v', 'w']];
  expect(unchanged).toEqual([...once, ...once]);
  expect(decoding.announced).toHaveLength(1);
});
