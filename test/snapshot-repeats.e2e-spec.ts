import { expect, it } from 'vitest';
import { HaltError } from '../lib/engine/model/halt.js';
import { compareTables, NO_DIFFERENCE } from './support/compare-tables.js';
import { copying, type Copying } from './support/copying.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer();

const RETRIED = { maxRetries: 1, backoffMs: 10 } as const;
const CHUNKS = { mode: 'incremental', chunkRows: 100 } as const;

async function complete({ pipeline }: Copying): Promise<void> {
  await waitFor(
    () => {
      if (pipeline.halt !== null) throw new HaltError(pipeline.halt);
      return pipeline.status().snapshot?.state === 'complete';
    },
    { message: 'the snapshot to be complete' },
  );
}

/** Cuts the connection of the stream. */
async function cut(source: TestDatabase): Promise<void> {
  await source.query(
    'select pg_terminate_backend(active_pid, 10000) from pg_replication_slots where slot_name = $1 and active_pid is not null',
    [`slot_${source.name}`],
  );
}

it.each(['the sink', 'the library'])(
  'a page of a table without a key that the sink has rejected is given to it again, where %s keeps the progress',
  async (who) => {
    const { source, target } = await sourceAndTarget(
      suite,
      'create table t(v text); create publication p for table t; insert into t select g from generate_series(1, 3500) g',
    );
    await target.query('create table t(v text)');
    let pages = 0;
    const copy = copying(source, {
      target,
      snapshot: CHUNKS,
      sinkRetry: RETRIED,
      ...(who === 'the library' && {
        checkpointStore: { connection: { ...target.connection } },
      }),
      beforeRows: async ({ rows }) => {
        if (rows.length === 0) return;
        pages += 1;
        if (pages === 2) throw new Error('not now');
      },
    });
    copy.pipeline.start();
    await complete(copy);
    expect(
      await target.query('select count(distinct v)::int as rows from t'),
    ).toEqual([{ rows: 3_500 }]);
    expect(copy.copied.reduce((sum, { rows }) => sum + rows.length, 0)).toBe(
      3_500,
    );
  },
);

it('tables that were copied on demand are not copied again when the connection is lost before the others are', async () => {
  const { source, target } = await sourceAndTarget(
    suite,
    `create table t(id int primary key); create publication p for table t;
     create table a(id int primary key); insert into a select generate_series(1, 250);
     create table b(id int primary key); insert into b select generate_series(1, 450)`,
  );
  await target.query(
    'create table t(id int primary key); create table a(id int primary key); create table b(id int primary key)',
  );
  let lost = false;
  const copy = copying(source, {
    target,
    snapshot: CHUNKS,
    beforeRows: async ({ rows, context }) => {
      if (lost || rows.length === 0 || context.relation !== 'public.b') return;
      lost = true;
      await cut(source);
    },
  });
  copy.pipeline.start();
  await complete(copy);
  await source.query('alter publication p add table a, b');
  await copy.pipeline.snapshot(['public.a', 'public.b']);
  expect(lost).toBe(true);
  const clearings = copy.copied
    .filter(({ context }) => context.firstForTable)
    .map(({ context }) => context.relation);
  expect(clearings).toEqual(['public.t', 'public.a', 'public.b']);
  for (const table of ['a', 'b'])
    expect(
      await target.query(`select count(*)::int as rows from ${table}`),
    ).toEqual([{ rows: table === 'a' ? 250 : 450 }]);
});

it('an initial copy whose position could not be stored behind its progress begins anew', async () => {
  const { source, target } = await sourceAndTarget(
    suite,
    `create table t(id int primary key, v text); create publication p for table t; insert into t select g, 'v' from generate_series(1, 10) g`,
  );
  await target.query(
    `create table t(id int primary key, v text);
     create function refuse() returns trigger language plpgsql as $$ begin raise exception 'not now' using errcode = '57P01'; end $$`,
  );
  let refused = false;
  const copy = copying(source, {
    target,
    afterRows: async () => {
      if (refused) return;
      refused = true;
      await target.query(
        'create trigger refuse before update on replicant_checkpoints for each row when (new.confirmed_lsn is not null) execute function refuse()',
      );
    },
  });
  copy.pipeline.start();
  await waitFor(() => copy.pipeline.state === 'reconnecting');
  await target.query('drop trigger refuse on replicant_checkpoints');
  await copy.pipeline.whenStreaming();
  expect(await compareTables(source, target)).toEqual(NO_DIFFERENCE);
});

it('a stream whose tables are copied begins while one of them is locked', async () => {
  const { source, target } = await sourceAndTarget(
    suite,
    'create table t(id int primary key); create table u(id int primary key); create publication p for table t, u',
  );
  await target.query(
    'create table t(id int primary key); create table u(id int primary key)',
  );
  const copy = copying(source, { target });
  copy.pipeline.start();
  await copy.pipeline.whenStreaming();
  await copy.pipeline.stop();
  const migration = await source.connect();
  await migration.query('begin; lock table u in access exclusive mode');
  try {
    copy.pipeline.start();
    await source.query('insert into t values (1)');
    await waitFor(
      async () => (await target.query('select from t')).length === 1,
      { timeout: 5_000, message: 'the row of the other table' },
    );
  } finally {
    await migration.query('rollback');
  }
});
