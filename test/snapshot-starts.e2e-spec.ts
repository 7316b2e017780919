import { expect, it } from 'vitest';
import { compareTables, NO_DIFFERENCE } from './support/compare-tables.js';
import { copying, type Copying } from './support/copying.js';
import { haltedFor } from './support/halted.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { deferred, waitFor } from './support/wait-for.js';

const suite = useServer();

const TABLES = 'create table t(id int primary key, v text)';
const CHUNKS = { mode: 'incremental', chunkRows: 100 } as const;

async function populated() {
  const both = await sourceAndTarget(
    suite,
    `${TABLES}; create publication p for table t; insert into t select g, 'old' from generate_series(1, 450) g`,
  );
  await both.target.query(TABLES);
  return both;
}

function slotOf(source: TestDatabase): string {
  return `slot_${source.name}`;
}

async function complete({ pipeline }: Copying): Promise<void> {
  await waitFor(() => pipeline.status().snapshot?.state === 'complete', {
    message: 'the snapshot to be complete',
  });
  await pipeline.caughtUp();
}

/** Copies some chunks, and is stopped then. */
async function interrupted(source: TestDatabase, target: TestDatabase) {
  const reached = deferred();
  let chunks = 0;
  const first = copying(source, {
    target,
    snapshot: CHUNKS,
    afterRows: async ({ rows }) => {
      if (rows.length > 0) chunks += 1;
      if (chunks === 2) reached.resolve();
    },
  });
  first.pipeline.start();
  await reached.promise;
  await first.pipeline.stop();
  return first;
}

it('goes on behind the last chunk when it is started again, and tells the sink once to remove what it has', async () => {
  const { source, target } = await populated();
  const first = await interrupted(source, target);
  const second = copying(source, { target, snapshot: CHUNKS });
  second.pipeline.start();
  await complete(second);
  const ids = [first, second].flatMap(({ copied }) =>
    copied.flatMap(({ rows }) => rows.map(({ record }) => record['id'])),
  );
  expect(ids).toHaveLength(450);
  expect(new Set(ids).size).toBe(450);
  expect(second.copied.some(({ context }) => context.firstForTable)).toBe(
    false,
  );
  expect(second.copied.at(-1)?.context.complete).toBe(true);
  expect(await compareTables(source, target)).toEqual(NO_DIFFERENCE);
});

it('copies nothing again once it is complete', async () => {
  const { source, target } = await populated();
  const first = copying(source, { target, snapshot: CHUNKS });
  first.pipeline.start();
  await complete(first);
  await first.pipeline.stop();
  const second = copying(source, { target, snapshot: CHUNKS });
  second.pipeline.start();
  await second.pipeline.whenStreaming();
  await source.query(`insert into t values (1000, 'new')`);
  await second.pipeline.caughtUp();
  expect(second.copied).toEqual([]);
  expect(await compareTables(source, target)).toEqual(NO_DIFFERENCE);
});

it('a sink that has a checkpoint and no progress was filled another way, and nothing is copied', async () => {
  const { source, target } = await populated();
  const before = copying(source, {
    target,
    snapshot: null,
    goForwardOnly: true,
  });
  before.pipeline.start();
  await before.pipeline.whenStreaming();
  await before.pipeline.stop();
  const after = copying(source, { target, snapshot: CHUNKS });
  after.pipeline.start();
  await after.pipeline.whenStreaming();
  await source.query(`insert into t values (1000, 'new')`);
  await after.pipeline.caughtUp();
  expect(after.copied).toEqual([]);
  expect(after.pipeline.status().neverCopied).toBeNull();
});

it('a slot that is there and nothing stored: everything is copied beside its stream', async () => {
  const { source, target } = await populated();
  await source.query(
    `select pg_create_logical_replication_slot($1, 'pgoutput')`,
    [slotOf(source)],
  );
  await source.query(
    'delete from t where id = 1; update t set v = $$new$$ where id = 2',
  );
  const copy = copying(source, { target, snapshot: CHUNKS });
  copy.pipeline.start();
  await complete(copy);
  expect(await compareTables(source, target)).toEqual(NO_DIFFERENCE);
});

it('a slot that is gone halts when the snapshot had begun, whatever keeps the checkpoint', async () => {
  const { source, target } = await populated();
  await interrupted(source, target);
  await source.query('select pg_drop_replication_slot($1)', [slotOf(source)]);
  const { pipeline } = copying(source, { target, snapshot: CHUNKS });
  pipeline.start();
  await haltedFor(pipeline, 'data_gap/slot_missing_with_checkpoint');
});

it('a sink that keeps position and progress by itself is copied to, resumed, and halts without its slot', async () => {
  const { source, target } = await populated();
  const kept: { position: bigint | null; progress: string | null } = {
    position: null,
    progress: null,
  };
  const reached = deferred();
  const sink = (copy: { rows: number }): Parameters<typeof copying>[1] => ({
    target,
    snapshot: CHUNKS,
    sink: {
      checkpoint: { kind: 'reader', read: async () => kept.position },
      snapshotProgress: async () => kept.progress,
      snapshot: async (rows, context) => {
        copy.rows += rows.length;
        kept.progress = context.progress;
        if (copy.rows === 200) reached.resolve();
      },
      transaction: async ({ commitLsn }) => {
        kept.position = commitLsn;
      },
    },
  });
  const first = { rows: 0 };
  const one = copying(source, sink(first));
  one.pipeline.start();
  await reached.promise;
  await one.pipeline.stop();
  const second = { rows: 0 };
  const two = copying(source, sink(second));
  two.pipeline.start();
  await complete(two);
  expect(first.rows + second.rows).toBe(450);
  await two.pipeline.stop();
  await two.pipeline.dropSlot();
  const three = copying(source, sink({ rows: 0 }));
  three.pipeline.start();
  await haltedFor(three.pipeline, 'data_gap/slot_missing_with_progress');
});

it.each([
  '',
  'nestjs-replicant-snapshot:2:x',
  'nestjs-replicant-snapshot:1:',
  '{"tables":[]}',
])('stored progress %j halts, and nothing is touched', async (progress) => {
  const { source, target } = await populated();
  await interrupted(source, target);
  await target.query(
    'update replicant_checkpoints set snapshot_progress = $1',
    [progress],
  );
  const { pipeline, copied } = copying(source, { target, snapshot: CHUNKS });
  pipeline.start();
  await haltedFor(pipeline, 'snapshot_progress_invalid');
  expect(copied).toEqual([]);
});

it('a role that may not read a table halts before anything is copied, in both modes', async () => {
  const { source, target } = await populated();
  const role = `reader_${source.name}`;
  await source.query(`create role ${role} login replication password 'p'`);
  try {
    for (const snapshot of [true, CHUNKS]) {
      const { pipeline, copied } = copying(source, {
        target,
        snapshot,
        connection: { ...source.connection, user: role, password: 'p' },
      });
      pipeline.start();
      const halt = await haltedFor(pipeline, 'preflight/select_privilege');
      expect(halt.detail).toContain('public.t');
      expect(copied).toEqual([]);
      await pipeline.stop();
    }
  } finally {
    await source.query(`drop role ${role}`);
  }
});
