import { describe, expect, it, onTestFinished } from 'vitest';
import type { PipelineOptions } from '../lib/engine/options/pipeline-options.js';
import { Pipeline } from '../lib/engine/pipeline.js';
import { capture, inserted, type Capture } from './support/capture.js';
import { terminateBackend, walsenderPid } from './support/logical-slot.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer();

/** What the pipeline warned of when it had begun to stream. */
async function advised(
  schema: string,
  publication: string | string[] = 'p',
  options: Partial<PipelineOptions> = {},
): Promise<Capture & { source: TestDatabase; warnings: string[] }> {
  const source = await suite.database();
  const target = await suite.database('target');
  await source.query(schema);
  const running = capture(source, { target, publication, ...options });
  const warnings: string[] = [];
  running.pipeline.on('warning', ({ message }) => warnings.push(message));
  running.pipeline.start();
  await running.pipeline.whenStreaming();
  return { ...running, source, warnings };
}

/** The SQLSTATE with which the application's own UPDATE fails; `null` when it works. */
async function refusal(source: TestDatabase, update: string): Promise<unknown> {
  try {
    await source.query(update);
    return null;
  } catch (error) {
    return error instanceof Error && 'code' in error ? error.code : error;
  }
}

/** The SQL that a warning says to run. */
function remedies(warning: string | undefined): string[] {
  return [...(warning ?? '').matchAll(/run[^:;]*: ([^;]*)/g)].map(
    ([, sql]) => sql ?? '',
  );
}

it('nothing is said of a publication that is in order', async () => {
  const { warnings } = await advised(
    `create table t(id int primary key, v text); create table part(id int primary key) partition by range (id);
     create table part_1 partition of part for values from (0) to (10); create table keyless(id int);
     create unlogged table buffer(id int); create table whole(id int); alter table whole replica identity full;
     create publication p for table t, part, whole`,
  );
  expect(warnings).toEqual([]);
});

describe('tables without a replica identity (O01)', () => {
  it.each([
    ['without a key', 'create table "T x"(id int, v int)'],
    [
      'with a deferrable key',
      'create table "T x"(id int primary key deferrable, v int)',
    ],
    [
      'that say so',
      'create table "T x"(id int primary key, v int); alter table "T x" replica identity nothing',
    ],
    [
      'whose index is gone',
      `create table "T x"(id int primary key, v int not null constraint u unique);
       alter table "T x" replica identity using index u; alter table "T x" drop constraint u`,
    ],
  ])('%s are named, with the SQL that mends them', async (_, table) => {
    const { source, warnings } = await advised(
      `${table}; insert into "T x" values (1, 1); create publication p for table "T x"`,
    );
    const update = 'update "T x" set v = 2';
    expect(await refusal(source, update)).toBe('55000');
    expect(warnings).toEqual([expect.stringContaining('public."T x";')]);
    const [remedy = ''] = remedies(warnings[0]);
    await source.query(remedy);
    expect(await refusal(source, update)).toBeNull();
  });

  it('are found through a schema, all tables, and the table that a partition is part of', async () => {
    const schema = `create schema a; create table a.t(id int); create schema b; create table b.t(id int);
      create table root(id int primary key) partition by range (id);
      create table leaf partition of root for values from (0) to (10); alter table leaf replica identity nothing;`;
    const some = await advised(
      `${schema} create publication p for tables in schema a; create publication q for table root`,
      ['p', 'q'],
    );
    expect(some.warnings).toEqual([
      expect.stringContaining(': a.t, public.leaf; add a primary key'),
    ]);
    const all = await advised(`${schema} create publication p for all tables`);
    expect(all.warnings).toEqual([
      expect.stringContaining(': a.t, b.t, public.leaf; add a primary key'),
    ]);
  });

  it('are not named where only inserts are published', async () => {
    const { warnings } = await advised(
      `create table t(id int); create publication p for table t with (publish = 'insert')`,
    );
    expect(warnings).toEqual([expect.stringContaining('does not publish')]);
  });

  it('are counted beyond ten', async () => {
    const tables = Array.from(
      { length: 13 },
      (_, index) => `t${String(index).padStart(2, '0')}`,
    );
    const { warnings } = await advised(
      `${tables.map((table) => `create table ${table}(id int)`).join(';')}; create publication p for all tables`,
    );
    const named = tables.slice(0, 10).map((table) => `public.${table}`);
    expect(warnings).toEqual([
      expect.stringContaining(`: ${named.join(', ')} and 3 more;`),
    ]);
  });
});

describe('columns of the replica identity that are not published', () => {
  it('are noticed where a column list leaves out the key (R02)', async () => {
    const { source, warnings } = await advised(
      'create table t(id int primary key, v int); insert into t values (1, 1); create publication p for table t(v)',
    );
    expect(await refusal(source, 'update t set v = 2')).toBe('42P10');
    expect(warnings).toEqual([
      expect.stringMatching(/column list that does not cover.*: public\.t;/),
    ]);
  });

  it('are noticed where a table with full identity has a column list (R02)', async () => {
    const { source, warnings } = await advised(
      `create table t(id int primary key, v int); alter table t replica identity full; insert into t values (1, 1);
       create publication p for table t(id, v)`,
    );
    expect(await refusal(source, 'update t set v = 2')).toBe('42P10');
    expect(warnings).toEqual([
      expect.stringMatching(/column list that does not cover.*: public\.t;/),
    ]);
  });

  it('are noticed where they are generated, from PostgreSQL 18 on (R01)', async () => {
    const { source, warnings } = await advised(
      `create table t(id int primary key, v int, g int generated always as (v * 2) stored);
       alter table t replica identity full; insert into t values (1, 1); create publication p for table t`,
    );
    const update = 'update t set v = 2';
    if (suite.server.majorVersion < 18) {
      expect(await refusal(source, update)).toBeNull();
      expect(warnings).toEqual([]);
      return;
    }
    expect(await refusal(source, update)).toBe('42P10');
    expect(warnings).toEqual([
      expect.stringMatching(/generated columns of the.*: public\.t;/),
    ]);
    const [identity = '', published = ''] = remedies(warnings[0]);
    await source.query(identity);
    expect(await refusal(source, update)).toBeNull();
    await source.query('alter table t replica identity full');
    await source.query(published.replace('…', 'p'));
    expect(await refusal(source, update)).toBeNull();
  });

  it('are no matter where nothing but inserts is published', async () => {
    const { source, warnings } = await advised(
      `create table t(id int primary key, v int); insert into t values (1, 1);
       create publication p for table t(v) with (publish = 'insert, truncate')`,
    );
    expect(await refusal(source, 'update t set v = 2')).toBeNull();
    expect(warnings).toHaveLength(1);
  });
});

it('operations that a publication leaves out are named, with the SQL that adds them (R04)', async () => {
  const { source, warnings, pipeline, applied } = await advised(
    `create table t(id int primary key); create publication "P q" for table t with (publish = 'insert, truncate')`,
    ['P q'],
  );
  expect(warnings).toEqual([
    expect.stringContaining(
      'publication "P q" does not publish updates, deletes,',
    ),
  ]);
  await pipeline.stop();
  await source.query(remedies(warnings[0])[0] ?? '');
  pipeline.start();
  await pipeline.whenStreaming();
  expect(warnings).toHaveLength(1);
  await source.query('insert into t values (1)');
  await source.query('delete from t');
  await pipeline.caughtUp();
  expect(applied).toHaveLength(2);
});

it.each(['for all tables', 'for tables in schema public'])(
  'unlogged tables that a publication %s seems to cover are named',
  async (scope) => {
    const { source, warnings, pipeline, applied } = await advised(
      `create unlogged table u(id int primary key); create table t(id int primary key);
       create temporary table x(id int); create publication p ${scope}`,
    );
    expect(warnings).toEqual([
      expect.stringMatching(/^unlogged.*: public\.u;/),
    ]);
    await source.query('insert into u values (1); insert into t values (2)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([2]);
    await source.query(remedies(warnings[0])[0] ?? '');
    await source.query('insert into u values (3)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toContain(3);
  },
);

it('a table that the sink asks for by name and no publication carries is named', async () => {
  const source = await suite.database();
  await source.query(
    `create table t(id int primary key); create table other(id int primary key); create schema s; create table s."V x"(id int primary key);
     create publication p for table t; create publication q for table s."V x"`,
  );
  const pipeline = new Pipeline('test', {
    connection: { ...source.connection },
    slotName: `slot_${source.name}`,
    publication: ['p', 'q'],
    goForwardOnly: true,
  });
  pipeline.attach({
    name: 'Sink',
    checkpoint: { kind: 'reader', read: async () => null },
    tables: ['public.t', 's.V x', 'public.other', "public.it'mes"],
    transaction: async () => {},
  });
  onTestFinished(() => pipeline.stop());
  const warnings: string[] = [];
  pipeline.on('warning', ({ message }) => warnings.push(message));
  pipeline.start();
  await pipeline.whenStreaming();
  expect(warnings).toEqual(
    ["public.it'mes", 'public.other'].map(
      (name) =>
        `no publication of the pipeline carries ${name}, whose changes the sink asks for, so nothing of it comes; correct the name, or add the table to the publication`,
    ),
  );
});

describe('advice', () => {
  it('is given once for each start, not for each connection', async () => {
    const { warnings, pipeline } = await advised(
      'create table t(id int); create publication p for table t',
    );
    const { slotName } = pipeline.options;
    const states: string[] = [];
    pipeline.on('state', ({ to }) => states.push(to));
    const pid = await walsenderPid(suite.server, slotName);
    await terminateBackend(suite.server, pid);
    await waitFor(() => states.includes('streaming'));
    expect(warnings).toHaveLength(1);
    await pipeline.stop();
    pipeline.start();
    await pipeline.whenStreaming();
    expect(warnings).toHaveLength(2);
  });

  it('that cannot be given is told, and the pipeline streams', async () => {
    const { source, warnings, pipeline, applied } = await advised(
      'create table t(id int primary key); create publication p for table t',
    );
    await pipeline.stop();
    // A function of the catalog that the advice uses, and nothing else before streaming.
    await source.query(
      'revoke execute on function pg_catalog.string_agg(text, text) from public',
    );
    const user = `role_${source.name}`;
    await source.query(`create role ${user} login replication password 'x'`);
    try {
      const other = capture(source, {
        target: await suite.database('target'),
        slotName: `other_${source.name}`,
        connection: { ...source.connection, user, password: 'x' },
      });
      other.pipeline.on('warning', ({ message }) => warnings.push(message));
      other.pipeline.start();
      await other.pipeline.whenStreaming();
      expect(warnings).toEqual([
        'what is captured, and settings, could not be looked over (DatabaseError (SQLSTATE 42501))',
      ]);
      await source.query('insert into t values (1)');
      await other.pipeline.caughtUp();
      expect(inserted(other.applied, 'id')).toEqual([1]);
      await other.pipeline.stop();
    } finally {
      await source.query(`drop role ${user}`);
    }
    expect(applied).toEqual([]);
  });

  it('waits for no lock on a table', async () => {
    const source = await suite.database();
    await source.query(
      'create table t(id int); create publication p for table t',
    );
    const { pipeline } = capture(source, {
      target: await suite.database('target'),
    });
    // The creation of a slot would wait for the transaction that holds the lock.
    await source.query('select pg_create_logical_replication_slot($1, $2)', [
      pipeline.options.slotName,
      'pgoutput',
    ]);
    const altering = await source.connect();
    await altering.query('begin; lock table t in access exclusive mode');
    const warnings: string[] = [];
    pipeline.on('warning', ({ message }) => warnings.push(message));
    pipeline.start();
    await pipeline.whenStreaming();
    expect(warnings).toEqual([expect.stringContaining('public.t')]);
    await altering.query('rollback');
  });
});

describe('transactions that are sent while they run', () => {
  it.each<[string, Partial<PipelineOptions>, number]>([
    ['do not fit into memory, and have no disk', { streaming: {} }, 1],
    ['have a disk', { streaming: { spill: {} } }, 0],
    [
      'fit into memory',
      { streaming: {}, maxInflightBytes: 64 * 1024 * 1024 },
      0,
    ],
  ])('that %s', async (_, options, told) => {
    const { warnings } = await advised(
      'create table t(id int primary key); create publication p for table t',
      'p',
      options,
    );
    // Where the tests keep their files may be memory, which is told too.
    const about = warnings.filter((text) => text.includes('maxInflightBytes'));
    expect(about).toHaveLength(told);
    if (told > 0)
      expect(about[0]).toMatch(
        /maxInflightBytes \(16777216\).*logical_decoding_work_mem \(65536 kB\).*add spill: \{\}/,
      );
  });
});
