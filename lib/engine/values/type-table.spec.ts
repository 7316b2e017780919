import pg from 'pg';
import { describe, expect, it } from 'vitest';
import type { CatalogType } from './catalog-types.js';
import { TypeTable } from './type-table.js';

const INT4_ARRAY = 1007;
const USER_TYPE = 16_400;
const OTHER_TYPE = 4_294_967_000;

function row(
  oid: number,
  kind: CatalogType['kind'],
  inner = 0,
  delimiter = ',',
): CatalogType {
  return { oid: String(oid), kind, inner: String(inner), delimiter };
}

/** What a table makes of `text` once the catalog has answered. */
function learned(rows: readonly CatalogType[], text: string): unknown {
  const table = new TypeTable('exact');
  table.announce(USER_TYPE, 'public', '_thing');
  table.learn([USER_TYPE], rows);
  return table.parser(USER_TYPE)(text);
}

describe('exact', () => {
  it('reads scalars and arrays of built-in types', () => {
    const table = new TypeTable('exact');
    expect(table.parser(23)('42')).toBe(42);
    expect(table.parser(20)('42')).toBe('42');
    expect(table.parser(INT4_ARRAY)('{{1,NULL},{-3,4}}')).toEqual([
      [1, null],
      [-3, 4],
    ]);
  });

  it.each([
    [
      'bool',
      1000,
      '{{t,f},{NULL,t}}',
      [
        [true, false],
        [null, true],
      ],
    ],
    ['int2', 1005, '{{1},{NULL}}', [[1], [null]]],
    [
      'int8',
      1016,
      '{{9223372036854775807},{NULL}}',
      [['9223372036854775807'], [null]],
    ],
    ['oid', 1028, '{4294967295}', [4_294_967_295]],
    [
      'float4',
      1021,
      '{{0.1,NULL},{-Infinity,NaN}}',
      [
        [0.1, null],
        [-Infinity, NaN],
      ],
    ],
    ['float8', 1022, '{{-0},{Infinity}}', [[-0], [Infinity]]],
    [
      'numeric',
      1231,
      '{{1.10,NaN},{NULL,-Infinity}}',
      [
        ['1.10', 'NaN'],
        [null, '-Infinity'],
      ],
    ],
    ['money', 791, '{"$1,234.56",NULL,-$0.01}', ['$1,234.56', null, '-$0.01']],
    [
      'bytea',
      1001,
      '{"\\\\x00","\\\\x5c78",NULL}',
      [Buffer.from([0]), Buffer.from('\\x'), null],
    ],
    ['date', 1182, '{2026-01-02,infinity}', ['2026-01-02', 'infinity']],
    ['time', 1183, '{24:00:00}', ['24:00:00']],
    [
      'timestamp',
      1115,
      '{"2026-01-02 03:04:05.5",NULL}',
      ['2026-01-02T03:04:05.5', null],
    ],
    [
      'timestamptz',
      1185,
      '{{"2026-01-02 03:04:05+00"},{infinity}}',
      [['2026-01-02T03:04:05.000000Z'], ['infinity']],
    ],
    [
      'json',
      199,
      '{"{\\"a\\":[1,2]}","null",NULL}',
      ['{"a":[1,2]}', 'null', null],
    ],
    ['jsonb', 3807, '{1.10}', ['1.10']],
    ['text', 1009, '{NULLABLE,"NULL",NULL}', ['NULLABLE', 'NULL', null]],
    ['char(n)', 1014, '{"ab   "}', ['ab   ']],
    ['"char"', 1002, '{x}', ['x']],
    [
      'uuid',
      2951,
      '{00000000-0000-0000-0000-000000000001}',
      ['00000000-0000-0000-0000-000000000001'],
    ],
    ['box', 1020, '{(1,1),(0,0);NULL}', ['(1,1),(0,0)', null]],
    ['point', 1017, '{"(1,2)"}', ['(1,2)']],
    ['int2vector', 1006, '{"1 2","3"}', ['1 2', '3']],
    ['int4range', 3905, '{"[1,3)",empty}', ['[1,3)', 'empty']],
    ['interval', 1187, '{"1 mon -1 days"}', ['1 mon -1 days']],
  ])('reads arrays of %s', (_, oid, literal, value) => {
    expect(new TypeTable('exact').parser(oid)(literal)).toEqual(value);
  });

  it('leaves an array with explicit bounds, or none at all, as text', () => {
    const parse = new TypeTable('exact').parser(INT4_ARRAY);
    expect(parse('[2:4]={1,2,3}')).toBe('[2:4]={1,2,3}');
    expect(parse('{1,,2}')).toBe('{1,,2}');
    expect(parse('')).toBe('');
  });

  it('leaves an element that cannot be read as text', () => {
    expect(new TypeTable('exact').parser(INT4_ARRAY)('{1,x}')).toEqual([
      1,
      'x',
    ]);
  });

  it('reads enums, composites and types nobody announced as text', () => {
    const table = new TypeTable('exact');
    table.announce(USER_TYPE, 'public', 'mood');
    expect(table.parser(USER_TYPE)('wi,th "q"')).toBe('wi,th "q"');
    expect(table.parser(OTHER_TYPE)('("O""Brien",)')).toBe('("O""Brien",)');
  });
});

describe('announce', () => {
  it.each(['', 'pg_catalog'])(
    'takes a domain for its base type, named in schema %j',
    (schema) => {
      const table = new TypeTable('exact');
      table.announce(USER_TYPE, schema, 'int4');
      table.announce(OTHER_TYPE, schema, '_bool');
      expect(table.parser(USER_TYPE)('7')).toBe(7);
      expect(table.parser(OTHER_TYPE)('{t,NULL}')).toEqual([true, null]);
      expect(table.unresolved([USER_TYPE, OTHER_TYPE])).toEqual([]);
    },
  );

  it('does not take a user type for the built-in type of the same name', () => {
    const table = new TypeTable('exact');
    table.announce(USER_TYPE, 'public', 'int4');
    expect(table.parser(USER_TYPE)('7')).toBe('7');
    table.announce(OTHER_TYPE, 'public', '_int4');
    expect(table.unresolved([OTHER_TYPE])).toEqual([OTHER_TYPE]);
  });

  it('tells types of one name in two schemas apart', () => {
    const table = new TypeTable('exact');
    table.announce(USER_TYPE, 'public', '_mood');
    table.announce(OTHER_TYPE, 's2', '_mood');
    table.learn(
      [USER_TYPE],
      [row(USER_TYPE, 'array', 16_399), row(16_399, 'other')],
    );
    expect(table.parser(USER_TYPE)('{sad}')).toEqual(['sad']);
    expect(table.unresolved([USER_TYPE, OTHER_TYPE])).toEqual([OTHER_TYPE]);
  });

  it('replaces a type whose OID was used again', () => {
    const table = new TypeTable('exact');
    table.announce(USER_TYPE, '', 'int4');
    table.announce(USER_TYPE, 'public', '_mood');
    expect(table.name(USER_TYPE)).toBe('_mood');
    table.learn([USER_TYPE], [row(USER_TYPE, 'array', 25)]);
    expect(table.parser(USER_TYPE)('{a}')).toEqual(['a']);
    table.announce(USER_TYPE, 'public', '_other');
    expect(table.parser(USER_TYPE)('{a}')).toBe('{a}');
    expect(table.unresolved([USER_TYPE])).toEqual([USER_TYPE]);
    table.announce(USER_TYPE, '', 'bool');
    expect(table.parser(USER_TYPE)('t')).toBe(true);
  });

  it('keeps what the catalog said when the server repeats itself', () => {
    const table = new TypeTable('exact');
    table.announce(USER_TYPE, 'public', '_mood');
    table.learn([USER_TYPE], [row(USER_TYPE, 'array', 25)]);
    table.announce(USER_TYPE, 'public', '_mood');
    expect(table.unresolved([USER_TYPE])).toEqual([]);
    expect(table.parser(USER_TYPE)('{a}')).toEqual(['a']);
  });
});

describe('unresolved', () => {
  function announced(types: ConstructorParameters<typeof TypeTable>[0]) {
    const table = new TypeTable(types);
    table.announce(USER_TYPE, 'public', '_mood');
    table.announce(16_401, 'public', 'mood');
    table.announce(16_402, '', '_int4');
    table.announce(OTHER_TYPE, '', '_hstore');
    return table;
  }
  const columns = [
    23,
    INT4_ARRAY,
    USER_TYPE,
    16_401,
    16_402,
    USER_TYPE,
    OTHER_TYPE,
    16_403,
  ];

  it('names what may be an array of a user type, once', () => {
    expect(announced('exact').unresolved(columns)).toEqual([
      USER_TYPE,
      OTHER_TYPE,
    ]);
  });

  it.each(['text', 'pg', pg.types] as const)(
    'names nothing where it makes no difference (%j)',
    (types) => {
      expect(announced(types).unresolved(columns)).toEqual([]);
    },
  );

  it('names nothing that the catalog was asked about', () => {
    const table = announced('exact');
    table.learn([USER_TYPE, OTHER_TYPE], [row(USER_TYPE, 'array', 25)]);
    expect(table.unresolved(columns)).toEqual([]);
  });
});

describe('learn', () => {
  it('reads an array of an enum', () => {
    const rows = [row(USER_TYPE, 'array', 16_399), row(16_399, 'other')];
    expect(learned(rows, '{sad,"wi,th \\"q\\"",NULL}')).toEqual([
      'sad',
      'wi,th "q"',
      null,
    ]);
  });

  it('reads an array of a composite as an array of texts', () => {
    const rows = [row(USER_TYPE, 'array', 16_399), row(16_399, 'other')];
    expect(learned(rows, '{"(n,\\"(\\"\\"\\"\\",1)\\")",NULL}')).toEqual([
      '(n,"("""",1)")',
      null,
    ]);
  });

  it('reads an array of a domain by the base type of the domain', () => {
    const rows = [
      row(USER_TYPE, 'array', 16_398),
      row(16_398, 'domain', 16_399),
      row(16_399, 'domain', 23),
    ];
    expect(learned(rows, '{{1},{2}}')).toEqual([[1], [2]]);
  });

  it('reads a domain over an array of a user type', () => {
    const rows = [
      row(USER_TYPE, 'domain', 16_398),
      row(16_398, 'array', 16_399),
      row(16_399, 'other'),
    ];
    expect(learned(rows, '{sad}')).toEqual(['sad']);
  });

  it('reads an array of a domain over an array', () => {
    const rows = [
      row(USER_TYPE, 'array', 16_398),
      row(16_398, 'domain', INT4_ARRAY),
    ];
    expect(learned(rows, '{"{1,2}",NULL}')).toEqual([[1, 2], null]);
  });

  it('separates elements as their type says', () => {
    const rows = [
      row(USER_TYPE, 'array', 16_399, ';'),
      row(16_399, 'domain', 603, ';'),
    ];
    expect(learned(rows, '{(1,1),(0,0);(2,2),(1,1)}')).toEqual([
      '(1,1),(0,0)',
      '(2,2),(1,1)',
    ]);
  });

  it('leaves a type whose name only looks like an array as text', () => {
    expect(learned([row(USER_TYPE, 'other')], '{a}')).toBe('{a}');
  });

  it('leaves a type that is gone as text', () => {
    expect(learned([], '{a}')).toBe('{a}');
  });

  it('leaves the elements of a type that is gone as text', () => {
    expect(learned([row(USER_TYPE, 'array', 16_399)], '{1}')).toEqual(['1']);
  });
});

describe('text', () => {
  it.each([
    [16, 't'],
    [17, '\\x00'],
    [1184, '2026-01-02 03:04:05+00'],
    [INT4_ARRAY, '{1}'],
    [OTHER_TYPE, 'x'],
  ])('delivers what the server printed for %i', (oid, text) => {
    expect(new TypeTable('text').parser(oid)(text)).toBe(text);
  });
});

describe('pg', () => {
  it('reads what a SELECT through pg returns', () => {
    const table = new TypeTable('pg');
    expect(table.parser(1184)('2026-01-02 03:04:05.123+00')).toEqual(
      new Date('2026-01-02T03:04:05.123Z'),
    );
    expect(table.parser(3802)('{"a": 1}')).toEqual({ a: 1 });
    expect(table.parser(20)('9007199254740993')).toBe('9007199254740993');
    expect(table.parser(OTHER_TYPE)('x')).toBe('x');
  });

  it('reads a domain as its base type, as the server describes the column to pg', () => {
    const table = new TypeTable('pg');
    table.announce(USER_TYPE, '', 'jsonb');
    expect(table.parser(USER_TYPE)('[1]')).toEqual([1]);
  });
});

describe('a types configuration', () => {
  it('is asked for the text parser of the base type', () => {
    const asked: unknown[] = [];
    const types: pg.CustomTypesConfig = {
      getTypeParser: (oid, format) => {
        asked.push([oid, format]);
        return (text: string) => `own ${text}`;
      },
    };
    const table = new TypeTable(types);
    table.announce(USER_TYPE, '', 'int8');
    table.announce(OTHER_TYPE, 'public', '_mood');
    expect(table.parser(20)('1')).toBe('own 1');
    table.parser(USER_TYPE);
    table.parser(OTHER_TYPE);
    expect(asked).toEqual([
      [20, 'text'],
      [20, 'text'],
      [OTHER_TYPE, 'text'],
    ]);
  });

  it('is called as a method, so that pg.TypeOverrides works', () => {
    const types = new pg.TypeOverrides();
    types.setTypeParser(pg.types.builtins.INT8, BigInt);
    const table = new TypeTable(types);
    expect(table.parser(20)('9007199254740993')).toBe(9007199254740993n);
    expect(table.parser(23)('1')).toBe(1);
  });
});

describe('name', () => {
  it('is the built-in name, else the announced one, else the OID', () => {
    const table = new TypeTable('text');
    table.announce(USER_TYPE, 'public', 'mood');
    table.announce(16_401, '', 'int4');
    expect(table.name(25)).toBe('text');
    expect(table.name(INT4_ARRAY)).toBe('_int4');
    expect(table.name(USER_TYPE)).toBe('mood');
    expect(table.name(16_401)).toBe('int4');
    expect(table.name(OTHER_TYPE)).toBe('4294967000');
  });
});

it('keeps the types of two connections apart', () => {
  const one = new TypeTable('exact');
  const two = new TypeTable('exact');
  one.announce(USER_TYPE, '', 'int4');
  two.announce(USER_TYPE, '', 'bool');
  expect(one.parser(USER_TYPE)('1')).toBe(1);
  expect(two.parser(USER_TYPE)('t')).toBe(true);
});
