import { describe, expect, it } from 'vitest';
import { withSqlSession } from '../lib/engine/server/session.js';
import { readPublishedNames } from '../lib/engine/server/published-names.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';

const suite = useServer();

function published(
  source: TestDatabase,
  ...publications: string[]
): Promise<string[]> {
  return withSqlSession(
    {
      connection: { ...source.connection },
      applicationName: 'test',
      signal: new AbortController().signal,
    },
    async (session) =>
      (await readPublishedNames(session, publications))
        .map(({ schema, table }) => `${schema}.${table}`)
        .toSorted(),
  );
}

const TABLES = `
  create schema app;
  create table plain(id int primary key);
  create table app."Odd name"(id int primary key);
  create unlogged table buffer(id int);
  create table tree(id int primary key) partition by range (id);
  create table tree_1 partition of tree for values from (0) to (10);
  create table tree_2 partition of tree for values from (10) to (30) partition by range (id);
  create table tree_21 partition of tree_2 for values from (10) to (20);
`;

describe('the names of published tables', () => {
  it.each<[string, string[], string[]]>([
    ['create publication p', ['p'], []],
    [
      'create publication p for table plain, app."Odd name"',
      ['p'],
      ['app.Odd name', 'public.plain'],
    ],
    [
      'create publication p for all tables',
      ['p'],
      ['app.Odd name', 'public.plain', 'public.tree_1', 'public.tree_21'],
    ],
    [
      'create publication p for all tables with (publish_via_partition_root)',
      ['p'],
      ['app.Odd name', 'public.plain', 'public.tree'],
    ],
    [
      'create publication p for tables in schema app, table plain',
      ['p'],
      ['app.Odd name', 'public.plain'],
    ],
    [
      'create publication p for table tree',
      ['p'],
      ['public.tree_1', 'public.tree_21'],
    ],
    [
      'create publication p for table tree_2, tree_1 with (publish_via_partition_root)',
      ['p'],
      ['public.tree_1', 'public.tree_2'],
    ],
    [
      `create publication p for table tree_2 with (publish_via_partition_root);
       create publication q for table tree with (publish_via_partition_root);
       create publication r for table tree_21, plain`,
      ['p', 'q', 'r'],
      ['public.plain', 'public.tree'],
    ],
    [
      `create publication p for table plain; create publication q for table app."Odd name"`,
      ['q', 'missing'],
      ['app.Odd name'],
    ],
  ])('are those of %s', async (sql, publications, names) => {
    const source = await suite.database();
    await source.query(`${TABLES} ${sql}`);
    expect(await published(source, ...publications)).toEqual(names);
  });

  it('are those of the server, in all but what goes through a root', async () => {
    const source = await suite.database();
    await source.query(`${TABLES} create publication p for all tables`);
    const rows = await source.query<{ name: string }>(
      `select schemaname || '.' || tablename as name from pg_publication_tables where pubname = 'p'`,
    );
    expect(await published(source, 'p')).toEqual(
      rows.map(({ name }) => name).toSorted(),
    );
  });

  it('wait for no lock on a table', async () => {
    const source = await suite.database();
    await source.query(`${TABLES} create publication p for table plain, tree`);
    const lock = await source.connect();
    await lock.query('begin; lock table plain, tree in access exclusive mode');
    expect(await published(source, 'p')).toContain('public.plain');
    await lock.query('rollback');
  });
});
