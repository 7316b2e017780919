import { describe, expect, it } from 'vitest';
import { formatLsn } from '../lib/engine/model/lsn.js';
import { PipelineStateError } from '../lib/engine/pipeline/state-error.js';
import { haltedFor, slotAndCheckpoint } from './support/halted.js';
import { expectPassed, halted, insert } from './support/passing-over.js';
import { POISON, poisoned, type Poisoned } from './support/poisoned.js';
import { present } from './support/present.js';
import { useServer } from './support/suite.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '4s' } });

describe('skipTransaction() is refused, and nothing is touched,', () => {
  /** What must be as it was. */
  async function standing({ source, target, pipeline }: Poisoned) {
    const places = await slotAndCheckpoint(source, target);
    return { places, state: pipeline.state, halt: pipeline.halt };
  }

  it('before the first start, while the pipeline streams, and when it was stopped', async () => {
    const stage = await poisoned(suite);
    const { pipeline, source, calls } = stage;
    await expect(pipeline.skipTransaction(1n)).rejects.toThrow(
      'Pipeline "test" has not halted (idle)',
    );
    pipeline.start();
    await pipeline.whenStreaming();
    await insert(source, 'one');
    await waitFor(() => calls.length === 1);
    const skipping = pipeline.skipTransaction(present(calls[0]));
    await expect(skipping).rejects.toThrow(PipelineStateError);
    await expect(skipping).rejects.toThrow('has not halted (streaming)');
    await pipeline.stop();
    const before = await standing(stage);
    await expect(pipeline.skipTransaction(present(calls[0]))).rejects.toThrow(
      'has not halted (stopped)',
    );
    expect(await standing(stage)).toEqual(before);
  });

  it('at every other position', async () => {
    const stage = await halted(suite);
    const { pipeline, lsn, calls } = stage;
    const before = await standing(stage);
    for (const other of [0n, present(calls[0]), lsn - 1n, lsn + 1n])
      await expect(pipeline.skipTransaction(other)).rejects.toThrow(
        `Pipeline "test" has halted at ${formatLsn(lsn)}`,
      );
    expect(await standing(stage)).toEqual(before);
  });

  it('at a halt for another reason, though that has a position', async () => {
    const stage = await poisoned(suite);
    const { pipeline, source } = stage;
    pipeline.start();
    await pipeline.whenStreaming();
    await insert(source, 'one');
    await source.query('alter table t rename v to w');
    await insert(source, 'two');
    const halt = await haltedFor(pipeline, 'schema_change/destructive');
    const before = await standing(stage);
    await expect(pipeline.skipTransaction(present(halt.lsn))).rejects.toThrow(
      'halted with schema_change/destructive',
    );
    expect(await standing(stage)).toEqual(before);
  });

  it('where a whole batch failed, until the option sinkRetry has found the transaction', async () => {
    const batchDelivery = { maxTransactions: 3, maxDelayMs: 60_000 };
    const stage = await poisoned(suite, { batchDelivery });
    const { pipeline, source, databases } = stage;
    pipeline.start();
    await pipeline.whenStreaming();
    await insert(source, 'before', POISON, 'behind');
    const halt = await haltedFor(pipeline, 'sink_failed');
    expect(halt.lsn).toBeNull();
    const before = await standing(stage);
    await expect(
      pipeline.skipTransaction(present(stage.calls[1])),
    ).rejects.toThrow('the option sinkRetry');
    expect(await standing(stage)).toEqual(before);

    const next = await poisoned(suite, {
      databases,
      batchDelivery: { ...batchDelivery, maxDelayMs: 500 },
      sinkRetry: { maxRetries: 1, backoffMs: 10 },
    });
    next.pipeline.start();
    const { lsn } = await haltedFor(next.pipeline, 'sink_failed');
    expect(lsn).toBe(stage.calls[1]);
    next.calls.length = 0;
    await next.pipeline.skipTransaction(present(lsn));
    await expectPassed(next, present(lsn), { calls: 0 });
  });

  it('while the pipeline is being stopped, inside a handler, and for the second of two at once', async () => {
    const stage = await halted(suite);
    const { pipeline, lsn, skipped } = stage;
    const both = [pipeline.skipTransaction(lsn), pipeline.skipTransaction(lsn)];
    await expect(both[1]).rejects.toThrow('has not halted (connecting)');
    await both[0];
    expect(skipped).toEqual([lsn]);
    const stopped = pipeline.stop();
    await expect(pipeline.skipTransaction(lsn)).rejects.toThrow(
      'is being stopped',
    );
    await stopped;

    let inside: Promise<void> | null = null;
    const other = await poisoned(suite, {
      sink: {
        async transaction({ commitLsn }) {
          inside = other.pipeline.skipTransaction(commitLsn);
          await inside;
        },
      },
    });
    other.pipeline.start();
    await other.pipeline.whenStreaming();
    await insert(other.source, 'one');
    await haltedFor(other.pipeline, 'sink_failed');
    await expect(inside).rejects.toThrow('has not halted (streaming)');
  });
});
