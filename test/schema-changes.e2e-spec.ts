import { describe, expect, it } from 'vitest';
import { changesIn, essence, streaming } from './support/delivered.js';
import { useServer } from './support/suite.js';

const suite = useServer();

describe('a table that changes in mid-stream', () => {
  it('gives rows with the columns that they were written with (N02)', async () => {
    const { run, applied } = await streaming(
      suite,
      'create table t(id int primary key)',
    );
    await run('insert into t values (1)');
    await run('alter table t add column n int not null default 7');
    await run('update t set id = id');
    await run('insert into t values (2, 8)');
    expect(changesIn(applied).map(essence)).toEqual([
      { op: 'insert', relation: 'public.t', record: { id: 1 } },
      {
        op: 'update',
        relation: 'public.t',
        record: { id: 1, n: 7 },
        unchanged: [],
        old: null,
      },
      { op: 'insert', relation: 'public.t', record: { id: 2, n: 8 } },
    ]);
  });

  it('may change type and name of a column inside one transaction (N04)', async () => {
    const { run, applied } = await streaming(
      suite,
      'create table t(id int primary key, a int)',
      { schemaChange: async () => {} },
    );
    await run(`begin;
      insert into t values (1, 1);
      alter table t alter a type text using a::text;
      insert into t values (2, 'two');
      alter table t rename a to z;
      insert into t values (3, 'three');
      commit`);
    expect(applied).toHaveLength(1);
    const changes = changesIn(applied);
    expect(changes.map(essence)).toMatchObject([
      { record: { id: 1, a: 1 } },
      { record: { id: 2, a: 'two' } },
      { record: { id: 3, z: 'three' } },
    ]);
    expect(
      changes.map(({ columns }) =>
        columns.map(({ name, type }) => `${name} ${type}`),
      ),
    ).toEqual([
      ['id int4', 'a int4'],
      ['id int4', 'a text'],
      ['id int4', 'z text'],
    ]);
  });

  it('may be without columns, and get one later (N06)', async () => {
    const { run, applied } = await streaming(suite, 'create table z()');
    await run('insert into z default values');
    await run('alter table z add column a int');
    await run('insert into z values (1)');
    expect(changesIn(applied).map(essence)).toEqual([
      { op: 'insert', relation: 'public.z', record: {} },
      { op: 'insert', relation: 'public.z', record: { a: 1 } },
    ]);
  });

  it('gives no rows when it is rewritten (N08)', async () => {
    const { run, applied } = await streaming(
      suite,
      `create table t(id int primary key, v int);
       insert into t select g, g from generate_series(1, 1000) g`,
    );
    await run('alter table t alter v type bigint');
    await run('vacuum full t');
    await run('cluster t using t_pkey');
    await run('create materialized view mv as select * from t');
    await run('refresh materialized view mv');
    await run('insert into t values (0, 0)');
    expect(changesIn(applied).map(essence)).toEqual([
      { op: 'insert', relation: 'public.t', record: { id: 0, v: '0' } },
    ]);
  });

  it('gives rows from the moment on in which it is logged, and temporary tables give none (N09)', async () => {
    const { run, applied } = await streaming(
      suite,
      'create unlogged table ul(id int primary key)',
    );
    await run('insert into ul values (1)');
    await run(
      'create temp table tt(id int primary key); insert into tt values (1)',
    );
    await run('alter table ul set logged');
    await run('insert into ul values (2)');
    expect(changesIn(applied).map(essence)).toEqual([
      { op: 'insert', relation: 'public.ul', record: { id: 2 } },
    ]);
  });
});

describe('a table of 1,600 columns', () => {
  it('is delivered whole', async () => {
    const names = Array.from({ length: 1_600 }, (_, index) => `c${index}`);
    const { run, applied } = await streaming(
      suite,
      `create table wide(${names.map((name) => `${name} int2`).join(', ')}); alter table wide replica identity full`,
    );
    const row = Object.fromEntries(
      names.map((name, index) => [name, index % 7 === 0 ? null : index]),
    );
    await run(
      `insert into wide values (${names.map((name) => row[name] ?? 'null').join(', ')})`,
    );
    await run('update wide set c1599 = -1');
    await run('delete from wide');
    const after = { ...row, c1599: -1 };
    expect(changesIn(applied).map(essence)).toEqual([
      { op: 'insert', relation: 'public.wide', record: row },
      {
        op: 'update',
        relation: 'public.wide',
        record: after,
        unchanged: [],
        old: { kind: 'full', record: row },
      },
      {
        op: 'delete',
        relation: 'public.wide',
        old: { kind: 'full', record: after },
      },
    ]);
  });
});
