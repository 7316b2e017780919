import { TypeOverrides } from 'pg';
import { describe, expect, it } from 'vitest';
import type { Row } from '../lib/engine/model/change.js';
import type { TypesOption } from '../lib/engine/options/pipeline-options.js';
import {
  NAMED_BY_SAMPLES,
  NOT_WRITABLE,
  SAMPLES,
} from './support/every-type.js';
import { snapshotRows } from './support/snapshot-rows.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { builtinTypes, userTypes } from './support/typed-tables.js';
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
      const { table, insert } = builtinTypes('m');
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
      const { table, insert } = userTypes('m');
      await source.query(NAMED_BY_SAMPLES);
      await source.query(table);
      await prepare(source);
      const exact = await expectEqual(source, '', insert);
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
