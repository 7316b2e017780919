import { describe, expect, it } from 'vitest';
import type { PipelineOptions } from '../lib/engine/options/pipeline-options.js';
import type { Pipeline } from '../lib/engine/pipeline.js';
import type { BatchReason } from '../lib/engine/model/batch-reason.js';
import { confirmedUpTo } from './support/logical-slot.js';
import { present } from './support/present.js';
import { insertEach, recorded, recording } from './support/recording.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer();
const other = useServer();

/** Both kinds of batches, which nothing but what a test is about closes. */
const KINDS = ['of the sink', 'of the library'] as const;

function openBatch(
  kind: (typeof KINDS)[number],
  target: TestDatabase,
): Partial<PipelineOptions> {
  const batch = { maxTransactions: 1_000, maxDelayMs: 600_000 };
  return kind === 'of the sink'
    ? { batchDelivery: batch }
    : { checkpointStore: { connection: { ...target.connection }, batch } };
}

function reasonsOf(pipeline: Pipeline): BatchReason[] {
  const reasons: BatchReason[] = [];
  pipeline.on('batch', ({ reason }) => reasons.push(reason));
  return reasons;
}

describe.each(KINDS)('an open batch %s', (kind) => {
  it('does not keep a transaction from arriving that fills what may be held', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline } = await recording(source, {
      target,
      ...openBatch(kind, target),
      maxInflightBytes: 64 * 1024,
    });
    pipeline.start();
    await pipeline.whenStreaming();
    const rounds = 10;
    const rows = 100;
    for (let round = 0; round < rounds; round += 1) {
      // Together they are more than may be held, and none of them is.
      await source.query(
        `insert into t values (${-round - 1}, repeat('x', 12000))`,
      );
      await source.query(
        `insert into t select g, repeat('x', 3000) from generate_series(${round * rows + 1}, ${(round + 1) * rows}) g`,
      );
      await pipeline.caughtUp();
    }
    expect(await recorded(target)).toHaveLength(rounds * (rows + 1));
  });

  it('does not keep the server from shutting down (F01)', async () => {
    const source = await other.database();
    await source.query(
      'create table t(id int primary key, v text); create publication p for table t',
    );
    const target = await suite.database('target');
    const { pipeline } = await recording(source, {
      target,
      ...openBatch(kind, target),
    });
    const reasons = reasonsOf(pipeline);
    pipeline.start();
    await pipeline.whenStreaming();
    await insertEach(source, [1, 2]);
    await waitFor(() => pipeline.status().inflightBytes > 2 * 512);
    await other.server.stop('fast', 10_000);
    expect(new Set(reasons)).toEqual(new Set(['stop']));
    expect(await recorded(target)).toEqual([1, 2]);
    await other.server.startAgain();
    await waitFor(() => pipeline.state === 'streaming');
    await insertEach(source, [3]);
    await waitFor(() => pipeline.status().inflightBytes > 512);
    await pipeline.stop();
    expect(await recorded(target)).toEqual([1, 2, 3]);
  });

  it('counts in the lag from its oldest transaction on', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline } = await recording(source, {
      target,
      ...openBatch(kind, target),
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await insertEach(source, [1]);
    await waitFor(() => pipeline.status().lag.milliseconds > 500);
    await insertEach(source, [2]);
    await waitFor(() => {
      const { inflightBytes, handler } = pipeline.status();
      return inflightBytes > 2 * 512 && handler === null;
    });
    expect(pipeline.status().lag.milliseconds).toBeGreaterThan(500);
  });

  it('is closed by what passes it by, when that is much', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline } = await recording(source, {
      target,
      ...openBatch(kind, target),
      maxInflightBytes: 64 * 1024,
      messages: true,
    });
    const reasons = reasonsOf(pipeline);
    pipeline.start();
    await pipeline.whenStreaming();
    await insertEach(source, [1]);
    await source.query(
      "select pg_logical_emit_message(false, 'nobody', '') from generate_series(1, 1000)",
    );
    await waitFor(() => reasons.length > 0);
    await waitFor(() => pipeline.status().inflightBytes === 0);
    expect(reasons).toEqual(['bytes']);
    expect(await recorded(target)).toEqual([1]);
  });
});

it('a batch that was given out one by one is confirmed as soon as it is done, and not with the next position', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const { pipeline, committed } = await recording(source, {
    target,
    batchDelivery: { maxTransactions: 2 },
    sinkRetry: { maxRetries: 1, backoffMs: 1 },
    async inside({ ids }) {
      if (ids.length > 1) throw new Error('no');
    },
  });
  const delivered: bigint[] = [];
  pipeline.on('delivered', ({ commitLsn }) => delivered.push(commitLsn));
  pipeline.start();
  await pipeline.whenStreaming();
  await insertEach(source, [1, 2]);
  await waitFor(() => delivered.length === 2);
  // Positions without a transaction are stored every ten seconds.
  await confirmedUpTo(
    source,
    `slot_${source.name}`,
    present(delivered[1]) + 1n,
    { timeout: 5_000 },
  );
  expect(committed).toEqual([[1], [2]]);
});
