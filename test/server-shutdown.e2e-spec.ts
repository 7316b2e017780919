import { describe, expect, it } from 'vitest';
import { capture, inserted } from './support/capture.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { deferred, waitFor } from './support/wait-for.js';

/** With its usual patience: positions are stored every ten seconds, unless the server asks. */
const suite = useServer();
const other = useServer();

async function sourceDatabase(): Promise<TestDatabase> {
  const source = await suite.database();
  await source.query(
    'create table t(id int primary key); create publication p for table t',
  );
  return source;
}

describe('a fast shutdown of the server', () => {
  it.each(['another server', 'the same server'])(
    'takes less than 2 s while the pipeline is idle and its sink is on %s, and nothing is lost (F01)',
    async (place) => {
      const source = await sourceDatabase();
      const home = place === 'the same server' ? suite : other;
      const target = await home.database('target');
      const { pipeline, applied, calls } = capture(source, { target });
      pipeline.start();
      await pipeline.whenStreaming();
      await source.query('insert into t values (1)');
      await pipeline.caughtUp();
      const began = performance.now();
      await suite.server.stop('fast');
      expect(performance.now() - began).toBeLessThan(2_000);
      await suite.server.startAgain();
      await source.query('insert into t values (2)');
      await waitFor(() => pipeline.state === 'streaming');
      await pipeline.caughtUp();
      expect(inserted(calls, 'id')).toEqual([1, 2]);
      expect(inserted(applied, 'id')).toEqual([1, 2]);
      expect(pipeline.halt).toBeNull();
    },
  );

  it('waits while a sink is blocked, since nothing is confirmed that is not durable; an immediate one loses nothing (F01)', async () => {
    const source = await sourceDatabase();
    const target = await other.database('target');
    const release = deferred();
    const { pipeline, applied, calls } = capture(source, {
      target,
      apply: () => release.promise,
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await source.query('insert into t values (2)');
    await waitFor(() => calls.length === 1);
    await expect(suite.server.stop('fast', 3_000)).rejects.toThrow(
      /did not stop within/,
    );
    expect(pipeline.state).toBe('streaming');
    await suite.server.stop('immediate');
    release.resolve();
    await waitFor(() => pipeline.state === 'reconnecting');
    await suite.server.startAgain();
    await waitFor(() => pipeline.state === 'streaming');
    await source.query('insert into t values (3)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1, 2, 3]);
    expect(pipeline.halt).toBeNull();
  });

  it('ends as soon as a blocked sink is released (F01)', async () => {
    const source = await sourceDatabase();
    const target = await other.database('target');
    const release = deferred();
    const { pipeline, applied, calls } = capture(source, {
      target,
      apply: () => release.promise,
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await waitFor(() => calls.length === 1);
    const stopping = suite.server.stop('fast');
    await waitFor(() => suite.server.log().includes('received fast shutdown'));
    release.resolve();
    await stopping;
    await waitFor(() => pipeline.state === 'reconnecting');
    await suite.server.startAgain();
    await waitFor(() => pipeline.state === 'streaming');
    await pipeline.caughtUp();
    expect(inserted(calls, 'id')).toEqual([1]);
    expect(inserted(applied, 'id')).toEqual([1]);
  });
});
