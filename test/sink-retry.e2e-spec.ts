import { expect, it } from 'vitest';
import { formatLsn } from '../lib/engine/model/lsn.js';
import type { Pipeline } from '../lib/engine/pipeline.js';
import type { PipelineEvents } from '../lib/engine/telemetry/pipeline-events.js';
import { range } from './support/copy.js';
import { haltedFor } from './support/halted.js';
import { terminateBackend, walsenderPid } from './support/logical-slot.js';
import {
  insertEach,
  recorded,
  recording,
  type Call,
} from './support/recording.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import { deferred, waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '4s' } });

/** Keeps what a pipeline tells of repetitions. */
function retriesOf(pipeline: Pipeline): PipelineEvents['retry'][] {
  const retries: PipelineEvents['retry'][] = [];
  pipeline.on('retry', (retry) => retries.push(retry));
  return retries;
}

/** Fails the first `times` calls that hold this row. */
function failing(id: number, times: number): (call: Call) => Promise<void> {
  let left = times;
  return async ({ ids }) => {
    if (!ids.includes(id) || left === 0) return;
    left -= 1;
    throw new TypeError('planted-secret');
  };
}

it('delivers a transaction again until the sink takes it, and none behind it before', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const { pipeline, committed, failed } = await recording(source, {
    target,
    sinkRetry: { maxRetries: 3, backoffMs: 10 },
    inside: failing(2, 3),
  });
  const retries = retriesOf(pipeline);
  let reconnects = 0;
  pipeline.on('reconnect', () => (reconnects += 1));
  pipeline.start();
  await pipeline.whenStreaming();
  await insertEach(source, [1, 2, 3]);
  await pipeline.caughtUp();
  expect(committed).toEqual([[1], [2], [3]]);
  expect(failed).toEqual([[2], [2], [2]]);
  expect(await recorded(target)).toEqual([1, 2, 3]);
  expect(reconnects).toBe(0);
  expect(retries).toEqual(
    [10, 20, 40].map((delayMilliseconds, index) => ({
      of: 'sink',
      reason: 'a handler of RecordingSink failed with TypeError',
      attempt: index + 1,
      maxRetries: 3,
      delayMilliseconds,
    })),
  );
});

it('halts when the sink has refused once more, at the transaction, and counts anew at the next start', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const { pipeline, failed } = await recording(source, {
    target,
    sinkRetry: { maxRetries: 2, backoffMs: 1 },
    inside: failing(2, 5),
  });
  pipeline.start();
  await pipeline.whenStreaming();
  await insertEach(source, [1, 2, 3]);
  const halt = await haltedFor(pipeline, 'sink_failed');
  expect(halt.lsn).toBeTypeOf('bigint');
  expect(String(halt.sinkError())).toContain('planted-secret');
  expect(failed).toEqual([[2], [2], [2]]);
  expect(await recorded(target)).toEqual([1]);
  pipeline.start();
  await pipeline.caughtUp();
  expect(failed).toHaveLength(5);
  expect(await recorded(target)).toEqual([1, 2, 3]);
});

it('does not deliver again by default', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const { pipeline, failed } = await recording(source, {
    target,
    inside: failing(1, 1),
  });
  pipeline.start();
  await pipeline.whenStreaming();
  await insertEach(source, [1]);
  await haltedFor(pipeline, 'sink_failed');
  expect(failed).toEqual([[1]]);
});

it('reads the checkpoint first: what was committed although the handler failed is not handed over again', async () => {
  const { source, target } = await sourceAndTarget(suite);
  let lost = false;
  const { pipeline, committed } = await recording(source, {
    target,
    sinkRetry: { maxRetries: 1, backoffMs: 1 },
    async after({ ids }) {
      if (!ids.includes(2)) return;
      lost = true;
      throw new Error('the answer of the commit was lost');
    },
  });
  pipeline.start();
  await pipeline.whenStreaming();
  await insertEach(source, [1, 2, 3]);
  await pipeline.caughtUp();
  expect(lost).toBe(true);
  expect(committed).toEqual([[1], [2], [3]]);
  expect(await recorded(target)).toEqual([1, 2, 3]);
});

it('reads the checkpoint first, also of a batch', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const { pipeline, committed } = await recording(source, {
    target,
    batchDelivery: { maxTransactions: 3, maxDelayMs: 600_000 },
    sinkRetry: { maxRetries: 1, backoffMs: 1 },
    async after({ ids }) {
      if (ids.length === 3)
        throw new Error('the answer of the commit was lost');
    },
  });
  pipeline.start();
  await pipeline.whenStreaming();
  await insertEach(source, [1, 2, 3]);
  await pipeline.caughtUp();
  expect(committed).toEqual([[1, 2, 3]]);
  expect(await recorded(target)).toEqual([1, 2, 3]);
});

it('hands over the rest of a batch of which a part was applied meanwhile', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const refused: Call[] = [];
  const { pipeline, committed, failed } = await recording(source, {
    target,
    batchDelivery: { maxTransactions: 3, maxDelayMs: 600_000 },
    sinkRetry: { maxRetries: 1, backoffMs: 1 },
    async inside(call) {
      if (failed.length > 0 || !call.ids.includes(4)) return;
      refused.push(call);
      throw new Error('no');
    },
    async asking() {
      // Another process, that was cut off and lives on, has applied the first of them.
      const [first] = refused.pop()?.transactions ?? [];
      if (first === undefined) return;
      const lsn = formatLsn(first.commitLsn);
      await target.query('insert into recorded values (4, $1)', [lsn]);
      await target.query('update replicant_checkpoints set commit_lsn = $1', [
        lsn,
      ]);
    },
  });
  pipeline.start();
  await pipeline.whenStreaming();
  await insertEach(source, range(1, 6));
  await pipeline.caughtUp();
  expect(committed).toEqual([[1, 2, 3], [5], [6]]);
  expect(await recorded(target)).toEqual(range(1, 6));
});

it('does not halt when the checkpoint cannot be read then: it connects anew', async () => {
  const { source, target } = await sourceAndTarget(suite);
  let away = false;
  const { pipeline, failed } = await recording(source, {
    target,
    sinkRetry: { maxRetries: 1, backoffMs: 1 },
    async inside() {
      if (failed.length > 0) return;
      away = true;
      throw new Error('no');
    },
    async asking() {
      if (away) throw new Error('the database is away');
    },
  });
  const lost = deferred();
  pipeline.on('reconnect', () => lost.resolve());
  pipeline.start();
  await pipeline.whenStreaming();
  await insertEach(source, [1]);
  await lost.promise;
  expect(pipeline.reason).toBe('the checkpoint is not available (Error)');
  away = false;
  await pipeline.caughtUp();
  expect(failed).toEqual([[1]]);
  expect(await recorded(target)).toEqual([1]);
});

it('goes on counting over connections that are lost in between', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const slotName = `slot_${source.name}`;
  const { pipeline, failed } = await recording(source, {
    target,
    sinkRetry: { maxRetries: 2, backoffMs: 60_000 },
    inside: failing(1, 3),
  });
  const retries = retriesOf(pipeline);
  pipeline.start();
  await pipeline.whenStreaming();
  await insertEach(source, [1]);
  for (const attempt of [1, 2]) {
    await waitFor(() => retries.at(-1)?.attempt === attempt, {
      timeout: 20_000,
    });
    await terminateBackend(source, await walsenderPid(source, slotName));
  }
  await haltedFor(pipeline, 'sink_failed');
  expect(failed).toEqual([[1], [1], [1]]);
}, 60_000);

it('brings a transaction that is read while it arrives again by a new connection, as often', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const options = { target, maxInflightBytes: 64 * 1024 };
  const rows = range(1, 5_000);
  const { pipeline, failed } = await recording(source, {
    ...options,
    sinkRetry: { maxRetries: 2, backoffMs: 10 },
    inside: failing(1, 5),
  });
  const retries = retriesOf(pipeline);
  const reconnects: string[] = [];
  pipeline.on('reconnect', ({ reason, delayMilliseconds }) =>
    reconnects.push(`${reason}: ${delayMilliseconds}`),
  );
  pipeline.start();
  await pipeline.whenStreaming();
  await source.query(
    "insert into t select g, repeat('x', 100) from generate_series(1, 5000) g",
  );
  const halt = await haltedFor(pipeline, 'sink_failed');
  expect(halt.lsn).toBeTypeOf('bigint');
  expect(retries.map(({ attempt }) => attempt)).toEqual([1, 2]);
  expect(reconnects).toEqual([
    expect.stringMatching(/^the sink is given .* again: 10$/),
    expect.stringMatching(/^the sink is given .* again: 20$/),
  ]);
  expect(failed).toHaveLength(3);
  pipeline.start();
  await pipeline.caughtUp();
  expect(await recorded(target)).toEqual(rows);
}, 60_000);

it('delivers a batch that was refused transaction by transaction, and halts at the one to blame', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const fail = failing(3, 3);
  let commitOfThree: bigint | undefined;
  const { pipeline, committed, failed } = await recording(source, {
    target,
    batchDelivery: { maxTransactions: 4, maxDelayMs: 600_000 },
    sinkRetry: { maxRetries: 1, backoffMs: 1 },
    inside: async (call) => {
      if (call.ids.includes(3) && call.ids.length === 1)
        commitOfThree = call.transactions[0]?.commitLsn;
      await fail(call);
    },
  });
  pipeline.start();
  await pipeline.whenStreaming();
  await insertEach(source, [1, 2, 3, 4]);
  const halt = await haltedFor(pipeline, 'sink_failed');
  expect(failed).toEqual([[1, 2, 3, 4], [3], [3]]);
  expect(committed).toEqual([[1], [2]]);
  expect(await recorded(target)).toEqual([1, 2]);
  expect(halt.lsn).toBe(commitOfThree);
  pipeline.start();
  await pipeline.whenStreaming();
  await waitFor(() => pipeline.status().inflightBytes > 2 * 512);
  await pipeline.stop();
  expect(await recorded(target)).toEqual([1, 2, 3, 4]);
});

it('names the transaction to blame of a batch, though the connection was lost before that was tried', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const { pipeline, failed } = await recording(source, {
    target,
    batchDelivery: { maxTransactions: 3, maxDelayMs: 600_000 },
    sinkRetry: { maxRetries: 1, backoffMs: 1_000 },
    inside: failing(2, 4),
  });
  const retries = retriesOf(pipeline);
  pipeline.start();
  await pipeline.whenStreaming();
  await insertEach(source, [1, 2, 3]);
  await waitFor(() => retries.length === 1);
  await terminateBackend(
    source,
    await walsenderPid(source, `slot_${source.name}`),
  );
  const halt = await haltedFor(pipeline, 'sink_failed');
  expect(halt.lsn).toBeTypeOf('bigint');
  expect(failed).toEqual([[1, 2, 3], [1, 2, 3], [2], [2]]);
});

it('stores with no transaction of a batch that was refused what those behind it bring', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const { pipeline } = await recording(source, {
    target,
    batchDelivery: { maxTransactions: 3, maxDelayMs: 600_000 },
    sinkRetry: { maxRetries: 1, backoffMs: 1 },
    inside: failing(5, 3),
  });
  const delivered: number[] = [];
  pipeline.on('delivered', ({ changes }) => delivered.push(changes));
  pipeline.start();
  await pipeline.whenStreaming();
  await insertEach(source, range(1, 5));
  await source.query('alter table t add column w int');
  await insertEach(source, [6]);
  await haltedFor(pipeline, 'sink_failed');
  expect(await recorded(target)).toEqual(range(1, 4));
  expect(delivered).toHaveLength(4);
  // Otherwise the fifth would look as if a column had been dropped.
  pipeline.start();
  await pipeline.whenStreaming();
  await insertEach(source, [7]);
  await pipeline.caughtUp();
  expect(await recorded(target)).toEqual(range(1, 7));
});

it('waits no longer when the pipeline stops, and what was refused comes again', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const { pipeline, failed } = await recording(source, {
    target,
    sinkRetry: { maxRetries: 2, backoffMs: 600_000 },
    drainTimeout: 20_000,
    inside: failing(1, 1),
  });
  const refused = deferred();
  pipeline.on('retry', () => refused.resolve());
  pipeline.start();
  await pipeline.whenStreaming();
  await insertEach(source, [1]);
  await refused.promise;
  await pipeline.stop();
  expect(pipeline.state).toBe('stopped');
  expect(failed).toEqual([[1]]);
  pipeline.start();
  await pipeline.caughtUp();
  expect(await recorded(target)).toEqual([1]);
});
