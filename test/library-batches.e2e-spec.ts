import { expect, it } from 'vitest';
import type { PipelineOptions } from '../lib/engine/options/pipeline-options.js';
import { range } from './support/copy.js';
import { haltedFor } from './support/halted.js';
import {
  currentLsn,
  readSlot,
  terminateBackend,
  walsenderPid,
} from './support/logical-slot.js';
import {
  batchesOf,
  insertEach,
  recorded,
  recording,
} from './support/recording.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { deferred, waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '4s' } });

/** A checkpoint of the library in the target, written for so many transactions at a time. */
function stored(
  target: TestDatabase,
  maxTransactions: number,
  maxDelayMs = 600_000,
): Pick<PipelineOptions, 'checkpointStore'> {
  return {
    checkpointStore: {
      connection: { ...target.connection },
      maxRetries: 1,
      retryBackoffMs: 1,
      batch: { maxTransactions, maxDelayMs },
    },
  };
}

/** Lets every write of a checkpoint fail from now on; those that are there stay. */
async function breakStore(target: TestDatabase): Promise<void> {
  await target.query(
    'alter table replicant_checkpoints add constraint broken check (false) not valid',
  );
}

async function mendStore(target: TestDatabase): Promise<void> {
  await target.query(
    'alter table replicant_checkpoints drop constraint broken',
  );
}

/** How many transactions the stored checkpoint has behind it. */
async function storedTransactions(target: TestDatabase): Promise<number> {
  const [row] = await target.query<{ count: number }>(
    `select count(distinct r.commit_lsn)::int as count
       from recorded r join replicant_checkpoints c on r.commit_lsn <= c.commit_lsn`,
  );
  return row?.count ?? 0;
}

it('hands over each transaction by itself, and stores the checkpoint once for several', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const { pipeline, committed } = await recording(source, {
    target,
    ...stored(target, 3),
  });
  const batches = batchesOf(pipeline);
  pipeline.start();
  await pipeline.whenStreaming();
  await insertEach(source, [1, 2]);
  await waitFor(() => committed.length === 2);
  expect(await storedTransactions(target)).toBe(0);
  await insertEach(source, range(3, 9));
  await pipeline.caughtUp();
  expect(committed).toEqual(range(1, 9).map((id) => [id]));
  expect(
    batches.map(({ transactions, reason }) => [transactions, reason]),
  ).toEqual([
    [3, 'count'],
    [3, 'count'],
    [3, 'count'],
  ]);
  expect(await storedTransactions(target)).toBe(9);
});

it('stores what has waited long enough', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const { pipeline } = await recording(source, {
    target,
    ...stored(target, 100, 200),
  });
  const batches = batchesOf(pipeline);
  pipeline.start();
  await pipeline.whenStreaming();
  await insertEach(source, [1, 2]);
  await pipeline.caughtUp();
  expect(batches.every(({ reason }) => reason === 'delay')).toBe(true);
  expect(await storedTransactions(target)).toBe(2);
});

it('a fault of the store repeats the transactions of the open batch, and no earlier one', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const first = await recording(source, { target, ...stored(target, 3) });
  const delivered = first.committed;
  first.pipeline.start();
  await first.pipeline.whenStreaming();
  await insertEach(source, range(1, 5));
  await waitFor(() => delivered.length === 5);
  await breakStore(target);
  await insertEach(source, [6]);
  const halt = await haltedFor(first.pipeline, 'checkpoint_store_failed');
  expect(halt.detail).toContain('23514');
  await first.pipeline.stop();
  await mendStore(target);
  expect(await storedTransactions(target)).toBe(3);

  const second = await recording(source, { target, ...stored(target, 3) });
  second.pipeline.start();
  await second.pipeline.caughtUp();
  expect(await recorded(target)).toEqual([1, 2, 3, 4, 4, 5, 5, 6, 6]);
});

it('a lost connection stores what was delivered, so that nothing comes again', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const { pipeline, committed } = await recording(source, {
    target,
    ...stored(target, 100),
  });
  const batches = batchesOf(pipeline);
  pipeline.start();
  await pipeline.whenStreaming();
  await insertEach(source, [1, 2, 3]);
  await waitFor(() => committed.length === 3);
  const lost = deferred();
  pipeline.on('reconnect', () => lost.resolve());
  await terminateBackend(
    source,
    await walsenderPid(source, `slot_${source.name}`),
  );
  await lost.promise;
  expect(batches).toMatchObject([{ reason: 'stop', transactions: 3 }]);
  expect(await storedTransactions(target)).toBe(3);
  await insertEach(source, [4]);
  await waitFor(() => committed.length === 4);
  await pipeline.stop();
  expect(await recorded(target)).toEqual([1, 2, 3, 4]);
});

it('a clean stop stores and confirms the open batch', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const first = await recording(source, { target, ...stored(target, 100) });
  first.pipeline.start();
  await first.pipeline.whenStreaming();
  await insertEach(source, [1, 2, 3]);
  const end = await currentLsn(source);
  await waitFor(() => first.committed.length === 3);
  await first.pipeline.stop();
  expect(await storedTransactions(target)).toBe(3);
  const slot = await readSlot(source, `slot_${source.name}`);
  expect(slot?.confirmedFlushLsn).toBeGreaterThanOrEqual(end);

  const second = await recording(source, { target, ...stored(target, 100) });
  second.pipeline.start();
  await second.pipeline.whenStreaming();
  await insertEach(source, [4]);
  await waitFor(() => second.committed.length === 1);
  await second.pipeline.stop();
  expect(await recorded(target)).toEqual([1, 2, 3, 4]);
});

it('a refusal of the sink halts at its transaction, with those before it stored', async () => {
  const { source, target } = await sourceAndTarget(suite);
  let poison = true;
  const { pipeline } = await recording(source, {
    target,
    ...stored(target, 100),
    async inside({ ids }) {
      if (poison && ids.includes(3)) throw new Error('no');
    },
  });
  const batches = batchesOf(pipeline);
  pipeline.start();
  await pipeline.whenStreaming();
  await insertEach(source, range(1, 5));
  const halt = await haltedFor(pipeline, 'sink_failed');
  expect(halt.lsn).toBeTypeOf('bigint');
  expect(batches).toMatchObject([{ reason: 'failure', transactions: 2 }]);
  expect(await storedTransactions(target)).toBe(2);
  poison = false;
  pipeline.start();
  await pipeline.whenStreaming();
  await waitFor(async () => (await recorded(target)).length === 5);
  await pipeline.stop();
  expect(await recorded(target)).toEqual(range(1, 5));
});

it('a refusal while the store is away is what halts, and a warning tells of the rest', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const { pipeline, committed } = await recording(source, {
    target,
    ...stored(target, 100),
    async inside({ ids }) {
      if (!ids.includes(3)) return;
      await breakStore(target);
      throw new Error('no');
    },
  });
  const warnings: string[] = [];
  pipeline.on('warning', ({ message }) => warnings.push(message));
  pipeline.start();
  await pipeline.whenStreaming();
  await insertEach(source, [1, 2]);
  await waitFor(() => committed.length === 2);
  await insertEach(source, [3]);
  await haltedFor(pipeline, 'sink_failed');
  expect(warnings).toEqual([
    expect.stringContaining('was not stored either (HaltError)'),
  ]);
});

it('stores a transaction that arrives in parts by itself, behind the open batch', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const { pipeline, committed } = await recording(source, {
    target,
    ...stored(target, 100),
  });
  const batches = batchesOf(pipeline);
  pipeline.start();
  await pipeline.whenStreaming();
  await insertEach(source, [1]);
  await source.query(
    "insert into t select g, repeat('x', 600) from generate_series(2, 5001) g",
  );
  await pipeline.caughtUp();
  expect(committed).toEqual([[1], range(2, 5001)]);
  expect(batches).toMatchObject([{ reason: 'large', transactions: 1 }]);
  expect(await storedTransactions(target)).toBe(2);
});
