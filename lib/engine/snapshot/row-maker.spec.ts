import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import type { PublishedTable } from '../server/published-table.js';
import { TypeTable } from '../values/type-table.js';
import type { AnySnapshotRow } from '../model/snapshot.js';
import type { Fill, RowMaker } from './incremental/chunk.js';
import { rowMaker } from './row-maker.js';

function table(
  ...columns: [name: string, typeOid: number, key?: boolean][]
): PublishedTable {
  return {
    oid: 16_400,
    schema: 'public',
    table: 't',
    name: 'public.t',
    quotedName: 'public.t',
    partitioned: false,
    replicaIdentity: 'default',
    columns: columns.map(([name, typeOid, key = false]) => ({
      name,
      quotedName: name,
      typeOid,
      typeModifier: -1,
      key,
    })),
    orderKey: null,
    identityKey: null,
    rowFilter: null,
    estimatedRows: null,
    estimatedRowBytes: null,
  };
}

function filled(maker: RowMaker, fill: Fill): AnySnapshotRow {
  return maker.fill(fill);
}

const INT4 = 23;
const TEXT = 25;
const EXACT = new TypeTable('exact');
const WIDE = table(['id', INT4, true], ['a', TEXT], ['b', TEXT], ['n', INT4]);

describe('rowMaker', () => {
  it('makes whole rows, with values by their types and columns as changes have them', () => {
    const row = rowMaker(table(['id', INT4, true], ['v', TEXT]), EXACT).whole([
      '7',
      null,
    ]);
    expect(row).toEqual({
      op: 'snapshot',
      relation: 'public.t',
      schema: 'public',
      table: 't',
      record: { id: 7, v: null },
      unchanged: [],
      columns: [
        {
          name: 'id',
          typeOid: INT4,
          type: 'int4',
          typeModifier: -1,
          key: true,
        },
        {
          name: 'v',
          typeOid: TEXT,
          type: 'text',
          typeModifier: -1,
          key: false,
        },
      ],
    });
  });

  it('makes JSON of a row', () => {
    const row = rowMaker(table(['id', INT4, true]), EXACT).whole(['7']);
    expect(JSON.parse(JSON.stringify(row))).toEqual({ ...row });
  });

  it('gives every row a record of its own', () => {
    const maker = rowMaker(WIDE, EXACT);
    const rows = [
      ['1', 'a', null, null],
      ['2', null, 'b', '3'],
    ].map((raw) => maker.whole(raw));
    expect(rows.map(({ record }) => record)).toEqual([
      { id: 1, a: 'a', b: null, n: null },
      { id: 2, a: null, b: 'b', n: 3 },
    ]);
  });

  it('takes any name for plain data', () => {
    const names = ['__proto__', 'constructor', 'toString', '1'] as const;
    const maker = rowMaker(
      table(
        ...names.map((name): [string, number, boolean] => [name, TEXT, true]),
      ),
      EXACT,
    );
    const raw = ['p', 'c', null, 'o'];
    for (const { record } of [
      maker.whole(raw),
      maker.whole(raw),
      filled(maker, { row: raw, columns: [] }),
    ]) {
      expect(Object.getPrototypeOf(record)).toBe(Object.prototype);
      expect(new Map(Object.entries(record))).toEqual(
        new Map(names.map((name, at) => [name, raw[at]])),
      );
    }
    const { record } = maker.whole([null, null, null, null]);
    expect(
      Object.getOwnPropertyDescriptor(record, '__proto__')?.value,
    ).toBeNull();
    expect(Object.getPrototypeOf(record)).toBe(Object.prototype);
  });

  it('fills the columns that are asked for, with the replica identity, and names the rest', () => {
    const { record, unchanged } = filled(rowMaker(WIDE, EXACT), {
      row: ['7', 'a', null, '9'],
      columns: [2, 3],
    });
    expect(record).toEqual({ id: 7, b: null, n: 9 });
    expect(unchanged).toEqual(['a']);
  });

  it('makes rows without columns of what COPY sends for them', () => {
    const { record } = rowMaker(table(), EXACT).whole(['']);
    expect(record).toEqual({});
  });

  it.each([
    ['whole', (raw: string[]) => rowMaker(WIDE, EXACT).whole(raw)],
    [
      'fill',
      (row: string[]) => filled(rowMaker(WIDE, EXACT), { row, columns: [] }),
    ],
  ])('refuses a row of another shape: %s', (_, make) => {
    expect(() => make(['planted-secret'])).toThrow(
      'decode_failure: a row of public.t has 1 values for 4 columns',
    );
    expect(() => make(['1', '2', '3', '4', '5'])).toThrow('5 values');
  });

  it('names the column and the class of an error of a parser, and no value', () => {
    const types = new TypeTable({
      getTypeParser: () => (text: string) => {
        throw new TypeError(`no ${text}`);
      },
    });
    const maker = rowMaker(table(['id', INT4, true], ['v "q"', TEXT]), types);
    for (const make of [
      () => maker.whole([null, 'planted-secret']),
      () => filled(maker, { row: [null, 'planted-secret'], columns: [1] }),
    ]) {
      let thrown: unknown;
      try {
        make();
      } catch (error) {
        thrown = error;
      }
      expect(thrown).toMatchObject({
        halt: {
          code: 'decode_failure',
          detail:
            'the parser of column "v \\"q\\"" of public.t threw TypeError',
        },
      });
      expect(inspect(thrown, { depth: 9 })).not.toContain('planted-secret');
    }
  });
});
