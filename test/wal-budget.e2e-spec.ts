import { describe, expect, it } from 'vitest';
import { Thresholds } from '../lib/health/thresholds.js';
import { capture } from './support/capture.js';
import { haltedFor } from './support/halted.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import { deferred, waitFor } from './support/wait-for.js';

const BUDGET = 96 * 1024 * 1024;
const suite = useServer({
  settings: {
    wal_sender_timeout: '2s',
    max_slot_wal_keep_size: '96MB',
    wal_keep_size: 0,
    // No checkpoint but that of the test.
    max_wal_size: '4GB',
    checkpoint_timeout: '1h',
  },
});

describe('a WAL budget', () => {
  it('that runs out under a slow sink is told in time, and the loss too (H02)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const release = deferred();
    const { pipeline } = capture(source, {
      target,
      health: { cacheFor: 1 },
      apply: () => release.promise,
    });
    const thresholds = new Thresholds(pipeline.options.health);
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query(
      'create table noise(pad text); insert into t values (1)',
    );

    /** Asks, and writes WAL until the limits are judged as wanted. */
    async function writeUntil(
      wanted: (judged: ReturnType<Thresholds['judge']>) => boolean,
    ) {
      return waitFor(
        async () => {
          await pipeline.checkSlot();
          const status = pipeline.status();
          if (status.slot?.state !== 'present') return null;
          if (wanted(thresholds.judge(status))) return status.slot;
          await source.query(
            "insert into noise select repeat('x', 500) from generate_series(1, 4000)",
          );
          return null;
        },
        { timeout: 60_000, message: 'the budget to shrink' },
      );
    }

    await pipeline.checkSlot();
    const { slot: first, ...status } = pipeline.status();
    expect(thresholds.judge({ ...status, slot: first })).toMatchObject({
      safeWal: false,
    });
    expect(first?.safeWalBytes).toBeGreaterThan(BUDGET * 0.5);
    expect(first?.secondsToLoss).toBeNull();

    const low = await writeUntil(({ safeWal }) => safeWal);
    expect(low.safeWalFraction).toBeLessThan(0.5);
    expect(low.safeWalFraction).toBeGreaterThan(0.15);
    expect(low.secondsToLoss).toBeGreaterThanOrEqual(0);
    expect(low.walStatus).toMatch(/reserved|extended/);

    const critical = await writeUntil(({ safeWalCritical }) => safeWalCritical);
    expect(critical.safeWalFraction).toBeLessThan(0.15);

    // A server gives up the slot at a checkpoint, and ends the session that streams from it.
    await waitFor(
      async () => {
        await source.query('select pg_switch_wal()');
        await suite.server.query('checkpoint');
        await pipeline.checkSlot();
        return pipeline.status().slot?.walStatus === 'lost';
      },
      { timeout: 60_000, message: 'the slot to be lost' },
    );
    expect(pipeline.status().slot?.invalidationReason).toBe('wal_removed');
    release.resolve();
    await haltedFor(pipeline, 'slot_invalidated/wal_lost');
  }, 180_000);
});
