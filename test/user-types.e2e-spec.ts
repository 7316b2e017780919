import { describe, expect, it } from 'vitest';
import { inserted } from './support/capture.js';
import { streaming } from './support/delivered.js';
import { currentLsn } from './support/logical-slot.js';
import { type SuiteServer, useServer } from './support/suite.js';
import { insertedByMode, selectRows } from './support/value-modes.js';

const suite = useServer({ settings: { log_statement: 'all' } });

/** How often the server was asked what types are made of, since it started. */
function catalogLookUps({ server }: SuiteServer): number {
  return server.log().split('WITH RECURSIVE needed').length - 1;
}

describe('user types', () => {
  it('of enums are text, values that were added in mid-stream too, and resolved by OID (M17)', async () => {
    const { run, applied } = await streaming(
      suite,
      `create schema s2; create type mood as enum('sad', 'o''k', 'wi,th "q"'); create type s2.mood as enum('up');
       create table m(id int primary key, a mood, b s2.mood, c mood[], d s2.mood[])`,
    );
    await run(
      `insert into m values (1, 'sad', 'up', '{sad,"wi,th \\"q\\""}', '{up}')`,
    );
    await run(`alter type mood add value 'new'`);
    await run(`insert into m values (2, 'new', 'up', '{new,NULL}', '{}')`);
    expect(inserted(applied, 'a')).toEqual(['sad', 'new']);
    expect(inserted(applied, 'b')).toEqual(['up', 'up']);
    expect(inserted(applied, 'c')).toEqual([
      ['sad', 'wi,th "q"'],
      ['new', null],
    ]);
    expect(inserted(applied, 'd')).toEqual([['up'], []]);
  });

  it('of composites are text, in arrays too, as a SELECT gives them (M19)', async () => {
    const source = await suite.database();
    const streamed = await insertedByMode(
      source,
      `create type addr as (street text, no int); create type person as (name text, home addr);
       create table m(id int primary key, p person, ps person[])`,
      `insert into m values (1, row('O"Brien, (x)', row('a\\b', null)), array[row('n', row('', 1))::person, null])`,
    );
    const selected = await selectRows(source);
    expect(streamed.exact).toEqual([
      {
        id: 1,
        p: selected.text[0]?.['p'],
        ps: ['(n,"("""",1)")', null],
      },
    ]);
    expect(streamed.text).toEqual(selected.text);
    expect(streamed.pg).toEqual(selected.pg);
  });

  it('of domains are read as their base type, in arrays and under other domains too', async () => {
    const { run, applied } = await streaming(
      suite,
      `create domain whole as int check (value > 0); create domain wholes as whole[]; create domain moment as timestamptz;
       create table m(id whole primary key, a whole[], b wholes, c moment, d moment[], e wholes[])`,
    );
    await run(
      `insert into m values (7, '{1,2}', '{3,NULL}', '2026-01-02 03:04:05Z', '{"2026-01-02 03:04:05Z"}', '{"{4,5}"}')`,
    );
    expect(applied[0]?.changes).toMatchObject([
      {
        record: {
          id: 7,
          a: [1, 2],
          b: [3, null],
          c: '2026-01-02T03:04:05.000000Z',
          d: ['2026-01-02T03:04:05.000000Z'],
          e: [[4, 5]],
        },
      },
    ]);
  });

  it('are looked up once a connection for their arrays, however many tables and rows use them', async () => {
    const { run, applied } = await streaming(
      suite,
      `create type mood as enum('sad', 'happy'); create type pair as (a int, b int);
       create table m(id int primary key, a mood[], b pair[]); create table n(id int primary key, a mood[]);
       create table plain(id int primary key, a mood, b text[])`,
    );
    const before = catalogLookUps(suite);
    await run(`insert into plain values (1, 'sad', '{x}')`);
    expect(catalogLookUps(suite) - before).toBe(0);
    await run(
      `insert into m select g, '{sad}', '{"(1,2)"}' from generate_series(1, 100) g`,
    );
    expect(catalogLookUps(suite) - before).toBe(1);
    await run(
      `insert into n values (1, '{happy}'); insert into m values (101, '{sad}', '{}')`,
    );
    await run('alter table m add column c text');
    await run(`insert into m values (102, '{happy}', '{}', 'c')`);
    expect(catalogLookUps(suite) - before).toBe(1);
    expect(inserted(applied, 'a').slice(1)).toEqual([
      ...Array.from({ length: 100 }, () => ['sad']),
      ['happy'],
      ['sad'],
      ['happy'],
    ]);
  });

  it('that were dropped before their rows are decoded leave text', async () => {
    const { source, pipeline, applied } = await streaming(
      suite,
      `create type mood as enum('sad'); create table m(id int primary key, a mood[], b text)`,
      { schemaChange: async () => {} },
    );
    await pipeline.stop();
    await source.query(
      `insert into m values (1, '{sad}', 'x'); alter table m drop column a; drop type mood; insert into m values (2, 'y')`,
    );
    const end = await currentLsn(source);
    pipeline.start();
    await pipeline.caughtUp(end);
    expect(inserted(applied, 'a')).toEqual(['{sad}', undefined]);
    expect(inserted(applied, 'b')).toEqual(['x', 'y']);
  });
});
