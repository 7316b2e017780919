import { TypeOverrides } from 'pg';
import { describe, expect, it } from 'vitest';
import type { Row } from '../lib/engine/model/change.js';
import type { TypesOption } from '../lib/engine/options/pipeline-options.js';
import {
  arrayText,
  NAMED_BY_SAMPLES,
  NOT_WRITABLE,
  SAMPLES,
} from './support/every-type.js';
import { snapshotRows } from './support/snapshot-rows.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { insertedByMode } from './support/value-modes.js';

const suite = useServer();

/** As far from the documented ones as they go. */
const ODD_SETTINGS = [
  `datestyle = 'SQL, DMY'`,
  `intervalstyle = 'sql_standard'`,
  `timezone = 'Asia/Kolkata'`,
  `extra_float_digits = -15`,
  `bytea_output = 'escape'`,
  `lc_monetary = 'POSIX'`,
  `client_encoding = 'LATIN1'`,
  `search_path = s2, public`,
  `quote_all_identifiers = on`,
  `row_security = on`,
];

async function copiedRows(
  source: TestDatabase,
  types: TypesOption,
): Promise<Row[]> {
  const rows = await snapshotRows(source.url, ['p'], types);
  return rows
    .filter(({ relation }) => relation === 'public.m')
    .map(({ record }) => record);
}

/** Expects that the rows of `m` come by a snapshot as they were streamed; returns those of `exact`. */
async function expectEqual(
  source: TestDatabase,
  tables: string,
  insert: string,
): Promise<readonly Row[]> {
  const streamed = await insertedByMode(source, tables, insert);
  expect(streamed.text.length).toBeGreaterThan(0);
  for (const types of ['text', 'pg', 'exact'] as const)
    expect(await copiedRows(source, types)).toEqual(streamed[types]);
  return streamed.exact;
}

/** Sets the defaults of the database, and of the role in it. */
async function makeOdd(source: TestDatabase): Promise<void> {
  for (const [index, setting] of ODD_SETTINGS.entries())
    await source.query(
      index % 2 === 0
        ? `alter database ${source.name} set ${setting}`
        : `alter role postgres in database ${source.name} set ${setting}`,
    );
}

function literal(text: string): string {
  return `E'${text.replaceAll("'", "''").replaceAll('\\', '\\\\')}'`;
}

/** A table with a column for each built-in type and one for its array, and rows of all samples. */
function builtinTypes(): { readonly table: string; readonly insert: string } {
  const columns = ['id int primary key'];
  const values: ((index: number) => string)[] = [(index) => String(index)];
  for (const [type, samples] of Object.entries(SAMPLES)) {
    const name = `pg_catalog."${type}"`;
    const delimiter = type === 'box' ? ';' : ',';
    const some = arrayText([...samples, null], delimiter);
    const arrays = [
      some,
      '{}',
      `[2:${samples.length + 2}]=${some}`,
      `{${some}${delimiter}${some}}`,
    ];
    columns.push(`"v_${type}" ${name}`, `"a_${type}" ${name}[]`);
    values.push(
      (index) => `${literal(samples[index % samples.length] ?? '')}::${name}`,
      (index) => `${literal(arrays[index % arrays.length] ?? '')}::${name}[]`,
    );
  }
  const rows = Array.from(
    { length: 12 },
    (_, index) => `(${values.map((value) => value(index)).join(', ')})`,
  );
  return {
    table: `create table m(${columns.join(', ')})`,
    insert: `insert into m values ${rows.join(', ')}; insert into m(id) values (12)`,
  };
}

const USER_TYPES = `
  create extension hstore; create extension citext; create extension ltree;
  create domain whole as int check (value > 0); create domain wholes as whole[]; create domain lists as wholes;
  create domain feeling as s2.mood; create domain feelings as s2.mood[]; create domain loose as citext; create domain moment as timestamptz;
  create domain code as varchar(3); create domain flags as bool[]; create domain boxes as box[];
  create type addr as (street text, no int, "at" timestamptz); create type person as (name text, home addr, tags text[]);
  create type span as range (subtype = float8); create domain home as addr;
  create table m(id int primary key, a s2.mood, b s2.mood[], c whole, d whole[], e wholes, f wholes[], g lists, h feeling, i feelings, j feeling[],
    k moment, l moment[], n code, o flags, p boxes, q boxes[], r addr, s person, t person[], u span, v span[], w span_multirange, x span_multirange[],
    y home, z home[], ha hstore, hb hstore[], ca citext, cb citext[], cc loose, cd loose[], la ltree, lb ltree[], ta s2."Odd"[],
    ia information_schema.sql_identifier, ib information_schema.yes_or_no[], ic information_schema.time_stamp)`;
const USER_ROWS = `insert into m values
  (1, 'sad', E'{sad,"wi,th \\\\"q\\\\"",NULL}', 7, '{1,2}', '{3,NULL}', '{"{4,5}","{}"}', '{6}', 'o''k', E'{"back\\\\\\\\slash"}', '{sad,NULL}',
   '2026-01-02 03:04:05.000001Z', '{"2026-01-02 03:04:05Z",infinity}', 'abc', '{t,f,NULL}', '{(1,1),(0,0);(3,3),(2,2)}', '{"{(1,1),(0,0);(3,3),(2,2)}"}',
   row(E'a\\\\b "c", (d)', null, 'infinity'), row(E'O"Brien\\t', row('', 1, '2026-01-02Z'), array['x,y', null, '']),
   array[row('n', row(E'\\\\', 1, null), null)::person, null], '[0.1,1e300)', '{"[-0,1)",empty}', '{[0.1,0.2),[3,)}', '{"{[0.1,0.2)}","{}"}',
   row('s', 1, null), array[row('s', 1, null)::addr::home, null], 'a=>1,b=>NULL,"q\\"k"=>"v,w"', array['a=>1'::hstore, null], 'MiXed', '{X,"y z"}', 'MiXed', '{X}',
   'a.b.c', '{a.b,c}', array[row()::s2."Odd"], 'name', '{YES,NO}', '2026-01-02 03:04:05.67Z'),
  (2, E'back\\\\slash', '{}', 1, '[2:3]={1,2}', '{}', '{}', '{}', 'sad', '{}', '{}', '-infinity', '{}', '', '{}', '{}', '{}', row(null, null, null), null, '{}',
   'empty', '{}', '{}', '{}', null, '{}', '', '{}', '', '{}', '', '{}', '', '{}', '{}', null, '{}', null)`;

describe('values of a snapshot are those of the stream', () => {
  it('for samples of every built-in type', async () => {
    const rows = await suite.server.query<{ typname: string }>(
      `select typname from pg_type where oid < 10000 and typtype in ('b', 'r', 'm') and typelem = 0
         or oid in ('pg_catalog.int2vector'::regtype, 'pg_catalog.oidvector'::regtype, 'pg_catalog.name'::regtype, 'pg_catalog.point'::regtype,
           'pg_catalog.lseg'::regtype, 'pg_catalog.box'::regtype, 'pg_catalog.line'::regtype) order by 1`,
    );
    const names = new Set(rows.map(({ typname }) => typname));
    for (const name of NOT_WRITABLE) names.delete(name);
    expect(Object.keys(SAMPLES).toSorted()).toEqual([...names].toSorted());
  });

  it.each([
    ['the defaults', async () => {}],
    ['odd settings of database and role (M14)', makeOdd],
  ])(
    'of all built-in types and their arrays, with %s (M01-M23)',
    async (_, prepare) => {
      const source = await suite.database();
      const { table, insert } = builtinTypes();
      await source.query(NAMED_BY_SAMPLES);
      await source.query(table);
      await prepare(source);
      const exact = await expectEqual(source, '', insert);
      expect(exact).toHaveLength(13);
      expect(exact[0]).toMatchObject({
        v_regclass: 'pg_class',
        v_bpchar: 'ab   ',
        v_inet: '::1',
        v_bool: true,
      });
      expect(exact.map((row) => row['v_regclass'])).toContain('public.m');
      expect(exact.map((row) => row['v_regtype'])).toContain('s2.mood');
    },
  );

  it.each([
    ['the defaults', async () => {}],
    ['odd settings of database and role (M14)', makeOdd],
  ])(
    'of enums, domains, composites, ranges, extension types and their arrays, with %s (M17, M19, M21)',
    async (_, prepare) => {
      const source = await suite.database();
      await source.query(NAMED_BY_SAMPLES);
      await source.query(USER_TYPES);
      await prepare(source);
      const exact = await expectEqual(source, '', USER_ROWS);
      expect(exact[0]).toMatchObject({
        b: ['sad', 'wi,th "q"', null],
        f: [[4, 5], []],
        g: [6],
        i: ['back\\slash'],
        k: '2026-01-02T03:04:05.000001Z',
        o: [true, false, null],
        q: [['(1,1),(0,0)', '(3,3),(2,2)']],
        cd: ['X'],
      });
    },
  );

  it('by parsers of the user', async () => {
    const types = new TypeOverrides();
    types.setTypeParser(20, 'text', BigInt);
    types.setTypeParser(1007, 'text', (text) => `ints ${text}`);
    const source = await suite.database();
    await source.query(
      `create domain big as bigint; create table m(id bigint primary key, b big, c int[]); create publication p for table m`,
    );
    await source.query(`insert into m values (1, 9007199254740993, '{1}')`);
    expect(await copiedRows(source, types)).toEqual([
      { id: 1n, b: 9007199254740993n, c: 'ints {1}' },
    ]);
  });
});
