import { describe, expect, it } from 'vitest';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { insertedByMode, selectRows } from './support/value-modes.js';

const suite = useServer();

/** Expects that what streams in the modes `pg` and `text` is what a SELECT gives; returns the rows of `exact`. */
async function exactRows(
  statements: { readonly tables: string; readonly insert: string },
  database?: TestDatabase,
): Promise<readonly object[]> {
  const source = database ?? (await suite.database());
  const streamed = await insertedByMode(
    source,
    statements.tables,
    statements.insert,
  );
  const selected = await selectRows(source);
  expect(selected.text.length).toBeGreaterThan(0);
  expect(streamed.text).toEqual(selected.text);
  expect(streamed.pg).toEqual(selected.pg);
  return streamed.exact;
}

describe('values of the stream', () => {
  it('keep infinite dates and times (M01)', async () => {
    const rows = await exactRows({
      tables:
        'create table m(id int primary key, d date, ts timestamp, tz timestamptz)',
      insert: `insert into m values (1, 'infinity', 'infinity', 'infinity'), (2, '-infinity', '-infinity', '-infinity')`,
    });
    expect(rows).toEqual([
      { id: 1, d: 'infinity', ts: 'infinity', tz: 'infinity' },
      { id: 2, d: '-infinity', ts: '-infinity', tz: '-infinity' },
    ]);
  });

  it('keep midnight at the end of the day and offsets with seconds (M03)', async () => {
    const rows = await exactRows({
      tables: 'create table m(id int primary key, t time, z timetz)',
      insert: `insert into m values (1, '24:00:00', '24:00:00+00'),
        (2, '23:59:59.999999', '12:34:56.789012-03:30'), (3, '00:00', '12:00:00+05:53:28')`,
    });
    expect(rows).toEqual([
      { id: 1, t: '24:00:00', z: '24:00:00+00' },
      { id: 2, t: '23:59:59.999999', z: '12:34:56.789012-03:30' },
      { id: 3, t: '00:00:00', z: '12:00:00+05:53:28' },
    ]);
  });

  it('keep microseconds, years of five digits and years before Christ (M04)', async () => {
    const rows = await exactRows({
      tables:
        'create table m(id int primary key, tz timestamptz, ts timestamp, d date)',
      insert: `insert into m values
        (1, '2026-01-01 00:00:00.123456+00', '2026-01-01 00:00:00.5', '2026-01-01'),
        (2, '2026-01-01 00:00:00.123457+00', '2026-01-01 00:00:00', '12026-01-01'),
        (3, '0044-03-15 00:00:00+00 BC', '12026-01-01 00:00:00', '0044-03-15 BC')`,
    });
    expect(rows).toEqual([
      {
        id: 1,
        tz: '2026-01-01T00:00:00.123456Z',
        ts: '2026-01-01T00:00:00.5',
        d: '2026-01-01',
      },
      {
        id: 2,
        tz: '2026-01-01T00:00:00.123457Z',
        ts: '2026-01-01T00:00:00',
        d: '12026-01-01',
      },
      {
        id: 3,
        tz: '0044-03-15 00:00:00+00 BC',
        ts: '12026-01-01 00:00:00',
        d: '0044-03-15 BC',
      },
    ]);
  });

  it('keep every digit of a numeric, and NaN, infinities and negative zero (M05)', async () => {
    const rows = await exactRows({
      tables: 'create table m(id int primary key, n numeric, f float8, r real)',
      insert: `insert into m values (1, 'NaN', 'NaN', 'NaN'), (2, 'Infinity', 'Infinity', '-Infinity'), (3, 1.10, 0.1, 0.1),
        (4, repeat('9', 100)::numeric, 1e308, 3.4e38), (5, '-0', '-0', '-0'), (6, 1e-30, 5e-324, 1e-45)`,
    });
    expect(rows).toEqual([
      { id: 1, n: 'NaN', f: NaN, r: NaN },
      { id: 2, n: 'Infinity', f: Infinity, r: -Infinity },
      { id: 3, n: '1.10', f: 0.1, r: 0.1 },
      { id: 4, n: '9'.repeat(100), f: 1e308, r: 3.4e38 },
      { id: 5, n: '0', f: -0, r: -0 },
      { id: 6, n: '0.000000000000000000000000000001', f: 5e-324, r: 1e-45 },
    ]);
  });

  it('keep a bigint beyond 2^53, alone and in an array (M06)', async () => {
    const rows = await exactRows({
      tables: 'create table m(id bigint primary key, v bigint[])',
      insert: `insert into m values (9007199254740993, '{9223372036854775807,-9223372036854775808,null}')`,
    });
    expect(rows).toEqual([
      {
        id: '9007199254740993',
        v: ['9223372036854775807', '-9223372036854775808', null],
      },
    ]);
  });

  it('keep numbers, duplicate keys and blanks inside JSON (M07)', async () => {
    const rows = await exactRows({
      tables: 'create table m(id int primary key, j jsonb, r json)',
      insert: `insert into m values (1, '{"n":12345678901234567890,"d":1.10,"e":1e400}', '{"a":1, "a":2 , "b":  1.0}')`,
    });
    expect(rows).toEqual([
      {
        id: 1,
        j: `{"d": 1.10, "e": 1${'0'.repeat(400)}, "n": 12345678901234567890}`,
        r: '{"a":1, "a":2 , "b":  1.0}',
      },
    ]);
  });

  it('tell JSON null from SQL NULL (M08)', async () => {
    const rows = await exactRows({
      tables: 'create table m(id int primary key, j jsonb)',
      insert: `insert into m values (1, 'null'), (2, null), (3, '"null"'), (4, '""'), (5, '0'), (6, 'false')`,
    });
    expect(rows).toEqual(
      ['null', null, '"null"', '""', '0', 'false'].map((j, index) => ({
        id: index + 1,
        j,
      })),
    );
  });

  it('tell NULL from an empty text (M09)', async () => {
    const rows = await exactRows({
      tables:
        'create table m(id int primary key, a text, b int, c timestamptz)',
      insert: `insert into m values (1, null, null, null), (2, '', 0, 'epoch')`,
    });
    expect(rows).toEqual([
      { id: 1, a: null, b: null, c: null },
      { id: 2, a: '', b: 0, c: '1970-01-01T00:00:00.000000Z' },
    ]);
  });

  it('keep every element of an array, whatever is in it (M10)', async () => {
    const rows = await exactRows({
      tables: 'create table m(id int primary key, a text[], n int[], x box[])',
      insert: `insert into m values
        (1, array['NULL', null, '', 'a"b', 'a\\b', '{x,y}', ' sp ', 'é😀', E'\\n\\t'], '{{1,2},{3,null}}', '{(1,1),(0,0);(3,3),(2,2)}'),
        (2, '{}', '[2:3]={1,2}', '{}'), (3, null, null, null)`,
    });
    expect(rows).toEqual([
      {
        id: 1,
        a: ['NULL', null, '', 'a"b', 'a\\b', '{x,y}', ' sp ', 'é😀', '\n\t'],
        n: [
          [1, 2],
          [3, null],
        ],
        x: ['(1,1),(0,0)', '(3,3),(2,2)'],
      },
      { id: 2, a: [], n: '[2:3]={1,2}', x: [] },
      { id: 3, a: null, n: null, x: null },
    ]);
  });

  it('are the same bytes whatever bytea_output is (M13)', async () => {
    const source = await suite.database();
    await source.query(
      `alter database ${source.name} set bytea_output = 'escape'`,
    );
    const rows = await exactRows(
      {
        tables: 'create table m(id int primary key, b bytea, ba bytea[])',
        insert: `insert into m values (1, '\\xdeadbeef00ff5c27', array['\\x00'::bytea, '\\x5c78'::bytea, null])`,
      },
      source,
    );
    expect(rows).toEqual([
      {
        id: 1,
        b: Buffer.from('deadbeef00ff5c27', 'hex'),
        ba: [Buffer.from('00', 'hex'), Buffer.from('5c78', 'hex'), null],
      },
    ]);
  });

  it('do not depend on the settings of the database (M14)', async () => {
    const source = await suite.database();
    for (const setting of [
      `datestyle = 'SQL, DMY'`,
      `intervalstyle = 'sql_standard'`,
      `timezone = 'Asia/Kolkata'`,
      `extra_float_digits = -5`,
      `lc_monetary = 'C'`,
      `client_encoding = 'LATIN1'`,
    ])
      await source.query(`alter database ${source.name} set ${setting}`);
    const rows = await exactRows(
      {
        tables: `create table m(id int primary key, d date, tz timestamptz, i interval, f float8, mo money, t text)`,
        insert: `insert into m values (1, '2026-02-03', '2026-02-03 04:05:06+00', '-1 year -2 mons +3 days -04:05:06.789',
          0.1::float8 + 0.2::float8, '-12.34', U&'\\4e2d')`,
      },
      source,
    );
    expect(rows).toEqual([
      {
        id: 1,
        d: '2026-02-03',
        tz: '2026-02-03T04:05:06.000000Z',
        i: '-1 years -2 mons +3 days -04:05:06.789',
        f: 0.30000000000000004,
        mo: '-$12.34',
        t: '中',
      },
    ]);
  });

  it('keep the parts of an interval as they are (M15)', async () => {
    const rows = await exactRows({
      tables: 'create table m(id int primary key, i interval)',
      insert: `insert into m values (1, '1 mon -1 day'), (2, '-00:00:00.000001'), (3, '178000000 years'), (4, '1 day 25:00:00')`,
    });
    expect(rows).toEqual([
      { id: 1, i: '1 mon -1 days' },
      { id: 2, i: '-00:00:00.000001' },
      { id: 3, i: '178000000 years' },
      { id: 4, i: '1 day 25:00:00' },
    ]);
  });

  it('are money as the server prints it in the locale C (M16)', async () => {
    const rows = await exactRows({
      tables: 'create table m(id int primary key, v money)',
      insert: `insert into m values (1, '92233720368547758.07'), (2, '-92233720368547758.08'), (3, null), (4, '1,234.56')`,
    });
    expect(rows).toEqual([
      { id: 1, v: '$92,233,720,368,547,758.07' },
      { id: 2, v: '-$92,233,720,368,547,758.08' },
      { id: 3, v: null },
      { id: 4, v: '$1,234.56' },
    ]);
  });

  it('are text for ranges and multiranges, empty and unbounded ones too (M20)', async () => {
    const rows = await exactRows({
      tables:
        'create table m(id int primary key, a tstzrange, b int4multirange, c numrange)',
      insert: `insert into m values (1, '[2026-01-01 00:00+00,infinity)', '{[1,3),[5,8)}', 'empty'), (2, '(,)', '{}', '[1.5,)')`,
    });
    expect(rows).toEqual([
      {
        id: 1,
        a: '["2026-01-01 00:00:00+00",infinity)',
        b: '{[1,3),[5,8)}',
        c: 'empty',
      },
      { id: 2, a: '(,)', b: '{}', c: '[1.5,)' },
    ]);
  });

  it('are text for the types of extensions, and arrays of those are arrays (M21)', async () => {
    const rows = await exactRows({
      tables: `create extension hstore; create extension citext; create extension ltree;
        create table m(id int primary key, h hstore, c citext, l ltree, ca citext[])`,
      insert: `insert into m values (1, 'a=>1,b=>NULL,"q\\"k"=>"v,w"', 'MiXed', 'a.b.c', '{X,y}')`,
    });
    expect(rows).toEqual([
      {
        id: 1,
        h: '"a"=>"1", "b"=>NULL, "q\\"k"=>"v,w"',
        c: 'MiXed',
        l: 'a.b.c',
        ca: ['X', 'y'],
      },
    ]);
  });

  it('read oid and xid8 without a sign (M22)', async () => {
    const rows = await exactRows({
      tables: 'create table m(id int primary key, o oid, x xid8, xs xid[])',
      insert: `insert into m values (1, 4294967295, '18446744073709551615', '{4294967295}')`,
    });
    expect(rows).toEqual([
      { id: 1, o: 4294967295, x: '18446744073709551615', xs: ['4294967295'] },
    ]);
  });

  it('keep padding, bits and the other types as the server prints them (M23)', async () => {
    const rows = await exactRows({
      tables: `create table m(id int primary key, a char(5), b "char", c name, d bit(9), e varbit, f inet, g macaddr8, h tsvector,
        i tsquery, j pg_lsn, k uuid, l bool, n xml, o point)`,
      insert: `insert into m values (1, 'ab', 'x', 'nm', B'101010101', B'1', '::1/128', '08:00:2b:01:02:03:04:05',
        'fat:1A ''o''''brien'':2', 'fat & !rat', 'FF/FFFFFFFF', '00000000-0000-0000-0000-000000000001', true, '<a>&#233;</a>', '(1,2)')`,
    });
    expect(rows).toEqual([
      {
        id: 1,
        a: 'ab   ',
        b: 'x',
        c: 'nm',
        d: '101010101',
        e: '1',
        f: '::1',
        g: '08:00:2b:01:02:03:04:05',
        h: `'fat':1A 'o''brien':2`,
        i: `'fat' & !'rat'`,
        j: 'FF/FFFFFFFF',
        k: '00000000-0000-0000-0000-000000000001',
        l: true,
        n: '<a>&#233;</a>',
        o: '(1,2)',
      },
    ]);
  });
});
