import { describe, expect, it } from 'vitest';
import type { Pipeline } from '../lib/engine/pipeline.js';
import { capture, inserted } from './support/capture.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import { deferred, waitFor } from './support/wait-for.js';

const suite = useServer();

/** Stops the pipeline, with a note of whether that has happened. */
function stop(pipeline: Pipeline): { done: boolean; promise: Promise<void> } {
  const stopping = { done: false, promise: pipeline.stop() };
  void stopping.promise.then(() => (stopping.done = true));
  return stopping;
}

/** Longer than a stop takes that waits for nobody. */
function aWhile(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 300));
}

describe('stopping waits for a handler that runs', () => {
  it('which has asked for the stop before its first await', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const release = deferred();
    const { pipeline, calls } = capture(source, {
      target,
      apply: () => {
        void pipeline.stop();
        return release.promise;
      },
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await waitFor(() => calls.length === 1);
    const stopping = stop(pipeline);
    await aWhile();
    expect([stopping.done, pipeline.state]).toEqual([false, 'draining']);
    release.resolve();
    await stopping.promise;
    expect(pipeline.state).toBe('stopped');
  });

  it('when something asks for it that an earlier handler has left behind', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const [ask, release] = [deferred(), deferred()];
    let stopping: ReturnType<typeof stop> | null = null;
    const { pipeline, calls, applied } = capture(source, {
      target,
      apply: async () => {
        if (calls.length > 1) return release.promise;
        void ask.promise.then(() => (stopping = stop(pipeline)));
      },
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await waitFor(() => applied.length === 1);
    await source.query('insert into t values (2)');
    await waitFor(() => calls.length === 2);
    ask.resolve();
    await aWhile();
    expect(stopping).toMatchObject({ done: false });
    release.resolve();
    await waitFor(() => pipeline.state === 'stopped');
    expect(inserted(applied, 'id')).toEqual([1, 2]);
  });

  it('when the pipeline has halted meanwhile, once and no longer than drainTimeout', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline, calls } = capture(source, {
      target,
      drainTimeout: 1_000,
      apply: () => new Promise(() => {}),
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await waitFor(() => calls.length === 1);
    await source.query('drop publication p');
    await source.query("insert into t values (2, 'x')");
    await waitFor(() => pipeline.state === 'halted');
    const stopping = stop(pipeline);
    await aWhile();
    expect(stopping.done).toBe(false);
    await stopping.promise;
    const began = performance.now();
    await pipeline.stop();
    expect(performance.now() - began).toBeLessThan(500);
    expect(pipeline.state).toBe('halted');
  });
});
