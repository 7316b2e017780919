import { describe, expect, it } from 'vitest';
import {
  Copying,
  copyGone,
  exportSnapshot,
} from './support/initial-copying.js';
import { present } from './support/present.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { deferred } from './support/wait-for.js';

const suite = useServer();

/** A database with these tables and a publication `p` of all of them. */
async function filled(sql: string): Promise<TestDatabase> {
  const source = await suite.database();
  await source.query(sql);
  await source.query('create publication p for all tables');
  return source;
}

async function copying(source: TestDatabase): Promise<Copying> {
  return new Copying(source, await exportSnapshot(source));
}

function table(name: string, rows: number): string {
  return `create table ${name} (id int primary key, v text);
    insert into ${name} select g, 'v' || g from generate_series(1, ${rows}) g;`;
}

describe('an initial copy', () => {
  const SIZES = [0, 1, 999, 1_000, 1_001, 8_193, 100_000];

  it('copies tables of whatever size, each beginning once and ending (K13)', async () => {
    const source = await filled(
      SIZES.map((rows) => table(`t${rows}`, rows)).join(''),
    );
    const copy = await copying(source);
    const tables = await copy.run({ parallelTables: 3 });
    expect(new Set(tables.map(({ name }) => name))).toEqual(
      new Set(SIZES.map((rows) => `public.t${rows}`)),
    );
    for (const rows of SIZES) {
      const name = `public.t${rows}`;
      const ids = copy.records(name).map(({ id }) => Number(id));
      expect(ids).toHaveLength(rows);
      expect(new Set(ids).size).toBe(rows);
      const pages = copy.pages.filter(({ relation }) => relation === name);
      expect(pages.map(({ firstForTable }) => firstForTable)).toEqual(
        pages.map((_page, index) => index === 0),
      );
      expect(copy.told).toContain(`done: ${name}`);
    }
    expect(copy.told[0]).toMatch(/^initial: /);
    await copyGone(source);
  });

  it('delivers rows as the stream brings them', async () => {
    const source = await filled(
      `create schema "Odd ""one";
       create table "Odd ""one"."T a" (id int primary key, "__proto__" text, d text[], "select" int default 1);
       insert into "Odd ""one"."T a" values (1, E'a\\tb', '{x,NULL}', null)`,
    );
    const copy = await copying(source);
    await copy.run({ types: 'exact' });
    expect(copy.pages).toHaveLength(1);
    const row = present(copy.pages[0]?.rows[0]);
    expect(JSON.parse(JSON.stringify(row))).toMatchObject({
      op: 'snapshot',
      relation: 'Odd "one.T a',
      schema: 'Odd "one',
      table: 'T a',
      unchanged: [],
    });
    expect(Object.entries(row.record)).toEqual([
      ['id', 1],
      ['__proto__', 'a\tb'],
      ['d', ['x', null]],
      ['select', null],
    ]);
    expect(row.columns.map(({ name, type, key }) => [name, type, key])).toEqual(
      [
        ['id', 'int4', true],
        ['__proto__', 'text', false],
        ['d', '_text', false],
        ['select', 'int4', false],
      ],
    );
  });

  it('copies what was committed before the slot begins, and nothing else', async () => {
    const source = await filled(table('t', 3));
    const open = await source.connect();
    const copy = await copying(source);
    await open.query('insert into t values (4)');
    await source.query('delete from t where id = 1; update t set v = 0');
    await copy.run();
    expect(copy.records('public.t')).toEqual([
      { id: '1', v: 'v1' },
      { id: '2', v: 'v2' },
      { id: '3', v: 'v3' },
    ]);
  });

  it('reads partitions through their root, and no table that inherits', async () => {
    const source = await suite.database();
    await source.query(
      `create table r (id int, v text) partition by list (id);
       create table r1 partition of r for values in (1); create table r2 partition of r for values in (2);
       insert into r values (1, 'a'), (2, 'b');
       create table t (id int primary key); create table child () inherits (t);
       insert into t values (1); insert into child values (2);
       create publication p for table r, only t with (publish_via_partition_root = true)`,
    );
    const copy = await copying(source);
    expect(await copy.run()).toMatchObject([
      { name: 'public.r' },
      { name: 'public.t' },
    ]);
    expect(copy.records('public.r')).toHaveLength(2);
    expect(copy.records('public.t')).toEqual([{ id: '1' }]);
  });

  it('reads the published rows and columns', async () => {
    const source = await suite.database();
    await source.query(
      `create schema s; create table s.t (id int primary key, secret text, v text);
       insert into s.t select g, 'secret', 'v' from generate_series(1, 10) g;
       create publication p for table s.t (id, v) where (id > 8)`,
    );
    const copy = await copying(source);
    await copy.run();
    expect(copy.records('s.t')).toEqual([
      { id: '9', v: 'v' },
      { id: '10', v: 'v' },
    ]);
  });

  it('copies nothing of a publication without tables', async () => {
    const source = await suite.database();
    await source.query('create publication p');
    const copy = await copying(source);
    expect(await copy.run()).toEqual([]);
    expect(copy.pages).toEqual([]);
    await copyGone(source);
  });

  it('copies as many tables at a time as it may, and each in one call at a time', async () => {
    const source = await filled(
      ['a', 'b', 'c'].map((name) => table(name, 5_000)).join(''),
    );
    const copy = await copying(source);
    const running = new Map<string, number>();
    const together = new Set<string>();
    const both = deferred();
    copy.during = async ({ relation }) => {
      expect(running.get(relation) ?? 0).toBe(0);
      running.set(relation, 1);
      const names = [...running].filter(([, count]) => count > 0);
      together.add(names.map(([name]) => name).join(' '));
      if (names.length === 2) both.resolve();
      await both.promise;
      running.set(relation, 0);
    };
    await copy.run({ parallelTables: 2 });
    expect(copy.records('public.c')).toHaveLength(5_000);
    expect([...together].every((names) => names.split(' ').length <= 2)).toBe(
      true,
    );
  });

  it('begins with the largest table', async () => {
    const source = await filled(
      table('a', 10) + table('b', 10_000) + table('c', 1_000),
    );
    await source.query('analyze');
    const copy = await copying(source);
    await copy.run();
    expect(copy.told.slice(1)).toEqual([
      'done: public.b',
      'done: public.c',
      'done: public.a',
    ]);
  });

  it('holds no more than a page of large rows (K12)', async () => {
    const source = await filled(
      `create table t (id int primary key, doc text);
       alter table t alter doc set storage external;
       insert into t select g, repeat('x', 1000000) from generate_series(1, 60) g;`,
    );
    const copy = await copying(source);
    let rows = 0;
    await copy.run({
      deliver: async (page) => {
        expect(page.rows.length).toBeLessThanOrEqual(5);
        rows += page.rows.length;
      },
    });
    expect(rows).toBe(60);
  });
});
