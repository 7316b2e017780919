import { HealthIndicatorService } from '@nestjs/terminus';
import { ReplicantRegistry } from 'nestjs-replicant';
import { ReplicantHealthIndicator } from 'nestjs-replicant/terminus';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Pipeline } from '../lib/engine/pipeline.js';
import { capture } from './support/capture.js';
import { walsenderPid, terminateBackend } from './support/logical-slot.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import { TcpProxy } from './support/tcp-proxy.js';
import { deferred, waitFor } from './support/wait-for.js';

const suite = useServer();

/** What liveness says of a pipeline. */
function liveness(pipeline: Pipeline): () => unknown {
  const indicator = new ReplicantHealthIndicator(
    new ReplicantRegistry([pipeline]),
    new HealthIndicatorService(),
  );
  return () => indicator.liveness()['replicant']?.status;
}

describe('a handler', () => {
  it('that hangs would be restarted, also after its connection is gone', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const release = deferred();
    const { pipeline } = capture(source, {
      target,
      health: { stalledAfter: 300 },
      apply: () => release.promise,
    });
    const live = liveness(pipeline);
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await waitFor(() => pipeline.status().handler !== null);
    await waitFor(() => live() === 'down');

    await terminateBackend(
      suite.server,
      await walsenderPid(suite.server, pipeline.options.slotName),
    );
    await waitFor(() => pipeline.state === 'reconnecting');
    expect(live()).toBe('down');
    release.resolve();
    await pipeline.whenStreaming();
    await pipeline.caughtUp();
    expect(live()).toBe('up');
  });

  it('that is slow but reads on is left alone', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const stalledAfter = 2_000;
    let longest = 0;
    const { pipeline, applied } = capture(source, {
      target,
      maxInflightBytes: 1,
      health: { stalledAfter },
      apply: async ({ changes }) => {
        for await (const _ of changes) await sleep(100);
      },
    });
    const live = liveness(pipeline);
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t select generate_series(1, 30)');
    await waitFor(
      () => {
        longest = Math.max(
          longest,
          pipeline.status().handler?.runningMilliseconds ?? 0,
        );
        expect(live()).toBe('up');
        return applied.length === 1;
      },
      { timeout: 30_000 },
    );
    expect(longest).toBeGreaterThan(stalledAfter);
  });

  it('that waits for what the server has not sent is left alone', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const proxy = await TcpProxy.start(suite.server.connection);
    onTestFinished(() => proxy.close());
    const stalledAfter = 300;
    let read = 0;
    const { pipeline, applied } = capture(source, {
      target,
      connection: { ...source.connection, port: proxy.port },
      maxInflightBytes: 1,
      health: { stalledAfter },
      apply: async ({ changes }) => {
        for await (const _ of changes) read += 1;
      },
    });
    const live = liveness(pipeline);
    pipeline.start();
    await pipeline.whenStreaming();
    proxy.throttle(200_000);
    await source.query(
      "insert into t select g, repeat('x', 500) from generate_series(1, 2000) g",
    );
    await waitFor(() => read > 100, { timeout: 20_000 });
    proxy.halfOpen('server-to-client');
    const stands = read;
    await waitFor(
      () =>
        (pipeline.status().handler?.runningMilliseconds ?? 0) >
        stalledAfter * 3,
    );
    await waitFor(() => pipeline.status().handler?.idleMilliseconds === 0);
    expect(live()).toBe('up');
    expect(read).toBeLessThan(2_000);
    expect(read).toBeGreaterThanOrEqual(stands);
    proxy.restore();
    await waitFor(() => applied.length === 1, { timeout: 20_000 });
  });
});
