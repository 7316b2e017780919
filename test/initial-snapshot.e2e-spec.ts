import { expect, it } from 'vitest';
import type { Pipeline } from '../lib/engine/pipeline.js';
import { range } from './support/copy.js';
import { compareTables, NO_DIFFERENCE } from './support/compare-tables.js';
import { copying } from './support/copying.js';
import { haltedFor } from './support/halted.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { deferred, waitFor } from './support/wait-for.js';

const suite = useServer();

const TABLES = `create table t(id int primary key, v text);
  create table empty(id int primary key);`;

async function populated(rows = 2_500) {
  const both = await sourceAndTarget(
    suite,
    `${TABLES} create publication p for table t, empty;
     insert into t select g, 'old ' || g from generate_series(1, ${rows}) g`,
  );
  await both.target.query(TABLES);
  return both;
}

/** Slots of this database. */
async function slots(source: TestDatabase): Promise<string[]> {
  const rows = await source.query<{ lsn: string }>(
    `select confirmed_flush_lsn::text as lsn from pg_replication_slots where database = current_database()`,
  );
  return rows.map(({ lsn }) => lsn);
}

/** Sessions of ours with an open transaction, or that hold back the horizon of vacuum. */
async function openTransactions(source: TestDatabase): Promise<unknown[]> {
  return source.query(
    `select pid, state from pg_stat_activity where datname = current_database()
       and application_name like 'nestjs-replicant%' and (state like 'idle in transaction%' or backend_xmin is not null)`,
  );
}

async function equal(
  pipeline: Pipeline,
  source: TestDatabase,
  target: TestDatabase,
) {
  await pipeline.caughtUp();
  expect(await compareTables(source, target)).toEqual(NO_DIFFERENCE);
}

it('copies in pages, then streams, with what is committed during the copy once', async () => {
  const { source, target } = await populated();
  const states: string[] = [];
  const { pipeline, copied, applied } = copying(source, {
    target,
    // Committed behind the snapshot, so it comes by the stream.
    beforeRows: async ({ context }) => {
      if (context.relation === 'public.t' && context.firstForTable)
        await source.query(`insert into t values (10000, 'new')`);
    },
  });
  pipeline.on('state', ({ to }) => states.push(to));
  const completed: number[] = [];
  pipeline.on('snapshotCompleted', ({ rows }) => completed.push(rows));
  pipeline.start();
  await pipeline.whenStreaming();
  await equal(pipeline, source, target);
  expect(states).toEqual(['connecting', 'snapshotting', 'streaming']);
  expect(completed).toEqual([2_500]);
  const pages = copied.filter(({ context }) => context.relation === 'public.t');
  expect(pages.map(({ rows }) => rows.length)).toEqual([1_000, 1_000, 500]);
  expect(pages.map(({ context }) => context.firstForTable)).toEqual([
    true,
    false,
    false,
  ]);
  expect(
    copied
      .filter(({ context }) => context.relation === 'public.empty')
      .map(({ rows, context }) => [rows.length, context.firstForTable]),
  ).toEqual([[0, true]]);
  expect(applied).toHaveLength(1);
  expect(await openTransactions(source)).toEqual([]);
  await pipeline.stop();
  pipeline.start();
  await pipeline.whenStreaming();
  expect(copied).toHaveLength(4);
});

it('takes a transaction that is larger than what is held, and was committed during the copy', async () => {
  const { source, target } = await populated();
  const { pipeline, applied } = copying(source, {
    target,
    beforeRows: async ({ context }) => {
      if (context.relation === 'public.t' && context.firstForTable)
        await source.query(
          `insert into t select g, repeat('x', 10000) from generate_series(10001, 10600) g`,
        );
    },
  });
  pipeline.start();
  await pipeline.whenStreaming();
  await equal(pipeline, source, target);
  expect(Array.isArray(applied[0]?.changes)).toBe(false);
});

it('a table that is empty at the source empties a stale mirror', async () => {
  const { source, target } = await populated(1);
  await target.query('insert into empty values (7)');
  const { pipeline } = copying(source, { target });
  pipeline.start();
  await pipeline.whenStreaming();
  expect(await target.query('select from empty')).toEqual([]);
});

it('with a store, keeps the position behind the copy there, and needs no method that is told', async () => {
  const { source, target } = await populated();
  const { pipeline, copied } = copying(source, {
    target,
    checkpointStore: { connection: { ...target.connection } },
  });
  pipeline.start();
  await pipeline.whenStreaming();
  const [slot] = await slots(source);
  const [row] = await target.query(
    'select commit_lsn, confirmed_lsn::text as lsn from replicant_checkpoints',
  );
  expect(row).toEqual({
    commit_lsn: null,
    lsn: copied[0]?.context.snapshotLsn && slot,
  });
  await source.query(`insert into t values (10000, 'new')`);
  await equal(pipeline, source, target);
});

it('a sink with a position of its own is told where the stream begins, and stores that', async () => {
  const { source, target } = await populated(10);
  let position: bigint | null = null;
  const told: unknown[] = [];
  const { pipeline } = copying(source, {
    target,
    sink: {
      checkpoint: { kind: 'reader', read: async () => position },
      snapshotComplete: async (checkpoint) => {
        told.push(checkpoint);
        position = checkpoint.commitLsn;
      },
      transaction: async ({ commitLsn }) => {
        position = commitLsn;
      },
    },
  });
  pipeline.start();
  await pipeline.whenStreaming();
  expect(told).toMatchObject([
    { pipeline: 'test', slotName: `slot_${source.name}`, commitLsn: position },
  ]);
  await pipeline.stop();
  pipeline.start();
  await pipeline.whenStreaming();
  expect(told).toHaveLength(1);
});

it('a sink that is told and stores nothing halts, and its slot is dropped', async () => {
  const { source, target } = await populated(10);
  const { pipeline } = copying(source, {
    target,
    sink: {
      checkpoint: { kind: 'reader', read: async () => null },
      snapshotComplete: async () => {},
    },
  });
  pipeline.start();
  const halt = await haltedFor(pipeline, 'snapshot_failed');
  expect(halt.detail).toContain('@Checkpoint()');
  expect(await slots(source)).toEqual([]);
});

it.each(['snapshot', 'snapshotComplete'] as const)(
  'a rejecting %s halts, leaves no slot and no transaction, and the next start copies everything',
  async (method) => {
    const { source, target } = await populated();
    const error = new TypeError('the secret');
    let refuse = true;
    const { pipeline } = copying(source, {
      target,
      ...(method === 'snapshot' && {
        beforeRows: async ({ context }) => {
          if (refuse && !context.firstForTable) throw error;
        },
      }),
      ...(method === 'snapshotComplete' && {
        sink: {
          snapshotComplete: async () => {
            if (refuse) throw error;
          },
        },
      }),
    });
    pipeline.start();
    const halt = await haltedFor(pipeline, 'snapshot_failed');
    expect(halt.sinkError()).toBe(error);
    expect(JSON.stringify(halt)).not.toContain('secret');
    expect(await slots(source)).toEqual([]);
    expect(await openTransactions(source)).toEqual([]);
    refuse = false;
    pipeline.start();
    await pipeline.whenStreaming();
    await equal(pipeline, source, target);
  },
);

it('the sink is asked again as sinkRetry says', async () => {
  const { source, target } = await populated();
  let refusals = 2;
  const { pipeline } = copying(source, {
    target,
    sinkRetry: { maxRetries: 2, backoffMs: 10 },
    beforeRows: async ({ context }) => {
      if (!context.firstForTable && refusals-- > 0) throw new Error('no');
    },
  });
  pipeline.start();
  await pipeline.whenStreaming();
  await equal(pipeline, source, target);
});

it('ten failures, lost connections and rejections, leave one slot and no transaction, and the last attempt copies everything', async () => {
  const { source, target } = await populated();
  let attempts = 0;
  let failures = 0;
  const { pipeline } = copying(source, {
    target,
    beforeRows: async ({ context }) => {
      if (context.relation !== 'public.t') return;
      if (context.firstForTable) attempts += 1;
      if (context.firstForTable || failures === attempts || failures === 10)
        return;
      failures += 1;
      expect(await slots(source)).toHaveLength(1);
      // Each loss in a row is waited for twice as long.
      if (failures > 3) throw new Error('no');
      await source.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name like 'nestjs-replicant%'`,
      );
    },
  });
  pipeline.start();
  await waitFor(
    async () => {
      if (pipeline.state === 'halted') {
        expect(await slots(source)).toEqual([]);
        pipeline.start();
      }
      return pipeline.state === 'streaming';
    },
    { timeout: 60_000 },
  );
  expect(attempts).toBe(11);
  expect(await slots(source)).toHaveLength(1);
  await equal(pipeline, source, target);
  expect(await openTransactions(source)).toEqual([]);
}, 90_000);

it('a stop in the middle waits for the handler, drops the slot, and the next start copies everything', async () => {
  const { source, target } = await populated();
  const reached = deferred();
  const release = deferred();
  let held = true;
  const { pipeline, copied } = copying(source, {
    target,
    beforeRows: async ({ context }) => {
      if (!held || context.firstForTable) return;
      reached.resolve();
      await release.promise;
    },
  });
  pipeline.start();
  await reached.promise;
  expect(pipeline.state).toBe('snapshotting');
  const stopped = pipeline.stop();
  await waitFor(async () => (await openTransactions(source)).length === 0);
  expect(pipeline.state).toBe('draining');
  held = false;
  release.resolve();
  await stopped;
  expect(pipeline.state).toBe('stopped');
  expect(await slots(source)).toEqual([]);
  const before = copied.length;
  pipeline.start();
  await pipeline.whenStreaming();
  await equal(pipeline, source, target);
  expect(copied.length).toBeGreaterThan(before);
});

it('a slot that another process left unfinished halts, and dropSlot() lets everything be copied', async () => {
  const { source, target } = await populated();
  await source.query(
    `select pg_create_logical_replication_slot($1, 'pgoutput')`,
    [`slot_${source.name}`],
  );
  const { pipeline } = copying(source, { target });
  pipeline.start();
  await haltedFor(pipeline, 'snapshot_incomplete');
  expect(await slots(source)).toHaveLength(1);
  await pipeline.dropSlot();
  pipeline.start();
  await pipeline.whenStreaming();
  await equal(pipeline, source, target);
});

it('a checkpoint that may be stored behind the copy keeps the slot', async () => {
  const { source, target } = await populated(10);
  let broken = false;
  const { pipeline } = copying(source, {
    target,
    checkpointStore: {
      connection: { ...target.connection },
      maxRetries: 0,
      retryBackoffMs: 10,
    },
    afterRows: async () => {
      if (broken) return;
      broken = true;
      await target.query(
        'alter table replicant_checkpoints rename slot_name to gone',
      );
    },
  });
  pipeline.start();
  await haltedFor(pipeline, 'checkpoint_store/refused');
  expect(await slots(source)).toHaveLength(1);
  await target.query(
    'alter table replicant_checkpoints rename gone to slot_name',
  );
  pipeline.start();
  // This process has made the slot, and knows now that nothing was stored.
  await pipeline.whenStreaming();
  await equal(pipeline, source, target);
});

it('many small tables are copied side by side, each by itself', async () => {
  const names = range(1, 12).map((n) => `t${n}`);
  const tables = names
    .map((name) => `create table ${name}(id int primary key)`)
    .join('; ');
  const { source, target } = await sourceAndTarget(
    suite,
    `${tables}; ${names.map((name) => `insert into ${name} select generate_series(1, 1500)`).join('; ')}; create publication p for all tables`,
  );
  await target.query(tables);
  const running = new Set<string>();
  let most = 0;
  const { pipeline } = copying(source, {
    target,
    snapshot: { parallelTables: 4 },
    beforeRows: async ({ context }) => {
      expect(running.has(context.relation)).toBe(false);
      running.add(context.relation);
      most = Math.max(most, running.size);
    },
    afterRows: async ({ context }) => {
      running.delete(context.relation);
    },
  });
  pipeline.start();
  await pipeline.whenStreaming();
  expect(most).toBeGreaterThan(1);
  expect(most).toBeLessThanOrEqual(4);
  await equal(pipeline, source, target);
});
