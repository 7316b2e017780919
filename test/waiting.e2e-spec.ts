import { describe, expect, it } from 'vitest';
import { HaltError } from '../lib/engine/model/halt.js';
import { parseLsn } from '../lib/engine/model/lsn.js';
import { PipelineStateError } from '../lib/engine/pipeline/state-error.js';
import { capture, inserted } from './support/capture.js';
import { currentLsn } from './support/logical-slot.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import { deferred, waitFor } from './support/wait-for.js';

const suite = useServer();

describe('whenStreaming', () => {
  it('waits for a pipeline that is not started yet, and resolves at once for one that streams', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline } = capture(source, { target });
    const waiting = pipeline.whenStreaming();
    pipeline.start();
    await waiting;
    expect(pipeline.state).toBe('streaming');
    await pipeline.whenStreaming();
  });

  it('rejects with the halt when the pipeline halts, and after it', async () => {
    const { source, target } = await sourceAndTarget(suite);
    await source.query('drop publication p');
    const { pipeline } = capture(source, { target });
    pipeline.start();
    const error = await pipeline.whenStreaming().catch((e: unknown) => e);
    expect(error).toBeInstanceOf(HaltError);
    expect(error).toMatchObject({ halt: { code: 'publication/missing' } });
    await expect(pipeline.whenStreaming()).rejects.toBeInstanceOf(HaltError);
    await source.query('create publication p for table t');
    pipeline.start();
    await pipeline.whenStreaming();
  });

  it('rejects when the pipeline is stopped, and after it', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline } = capture(source, {
      target,
      connection: { ...source.connection, port: 1 },
    });
    pipeline.start();
    const waiting = pipeline.whenStreaming();
    void pipeline.stop();
    await expect(waiting).rejects.toBeInstanceOf(PipelineStateError);
    await expect(pipeline.whenStreaming()).rejects.toBeInstanceOf(
      PipelineStateError,
    );
  });
});

describe('caughtUp', () => {
  it('resolves when everything up to now is durable, and not before', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const release = deferred();
    const { pipeline, applied } = capture(source, {
      target,
      apply: () => release.promise,
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    let done = false;
    const waiting = pipeline.caughtUp().then(() => (done = true));
    await waitFor(() => pipeline.status().inflightBytes > 0);
    await source.query('select 1');
    expect(done).toBe(false);
    release.resolve();
    await waiting;
    expect(inserted(applied, 'id')).toEqual([1]);
  });

  it('waits for a position, over a lost connection too', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline, applied } = capture(source, { target });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query(
      'select pg_terminate_backend(active_pid, 5000) from pg_replication_slots where database = current_database()',
    );
    await source.query('insert into t values (1)');
    await pipeline.caughtUp(await currentLsn(source));
    expect(inserted(applied, 'id')).toEqual([1]);
  });

  it('does not wait long after the last delivery, although the server said its position before', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const release = deferred();
    const { pipeline, calls } = capture(source, {
      target,
      apply: () => release.promise,
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await waitFor(() => calls.length === 1);
    // WAL that concerns nobody; the server tells its position while the sink is at work, and not again.
    await source.query('create table unpublished(id int)');
    const end = await currentLsn(source);
    await waitFor(() => {
      const { receivedLsn } = pipeline.status();
      return (parseLsn(receivedLsn ?? '') ?? 0n) >= end;
    });
    const began = performance.now();
    release.resolve();
    await pipeline.caughtUp(end);
    expect(performance.now() - began).toBeLessThan(5_000);
  });

  it('rejects when the pipeline halts, is stopped, or does not run', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline } = capture(source, {
      target,
      apply: () => Promise.reject(new Error('no')),
    });
    await expect(pipeline.caughtUp()).rejects.toBeInstanceOf(
      PipelineStateError,
    );
    pipeline.start();
    await pipeline.whenStreaming();
    const beyond = (await currentLsn(source)) + 1_000_000_000n;
    const stopped = pipeline.caughtUp(beyond);
    void pipeline.stop();
    await expect(stopped).rejects.toBeInstanceOf(PipelineStateError);

    pipeline.start();
    await pipeline.whenStreaming();
    const halted = pipeline.caughtUp(beyond);
    await source.query('insert into t values (1)');
    await expect(halted).rejects.toMatchObject({
      halt: { code: 'sink_failed' },
    });
    await expect(pipeline.caughtUp()).rejects.toBeInstanceOf(HaltError);
  });
});

describe('events', () => {
  it('tell states, deliveries and a halt, in order', async () => {
    const { source, target } = await sourceAndTarget(suite);
    let fail = false;
    const { pipeline } = capture(source, {
      target,
      apply: async () => {
        if (fail) throw new Error('planted-secret');
      },
    });
    const log: string[] = [];
    pipeline.on('state', ({ from, to }) => log.push(`${from} > ${to}`));
    pipeline.on('delivered', ({ changes }) => log.push(`delivered ${changes}`));
    pipeline.on('halt', ({ halt }) => log.push(halt.code));
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1), (2)');
    await pipeline.caughtUp();
    fail = true;
    await source.query('insert into t values (3)');
    await waitFor(() => pipeline.state === 'halted');
    expect(log).toEqual([
      'idle > connecting',
      'connecting > streaming',
      'delivered 2',
      'streaming > halted',
      'sink_failed',
    ]);
    expect(JSON.stringify(pipeline.status())).not.toContain('planted-secret');
    expect(pipeline.status()).toMatchObject({ transactions: 1, changes: 2 });
  });

  it('hurt nobody when a listener throws', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline, applied } = capture(source, { target });
    const warnings: Error[] = [];
    const warn = (warning: Error): void => void warnings.push(warning);
    process.on('warning', warn);
    pipeline.on('state', () => {
      throw new Error('planted-secret');
    });
    pipeline.on('delivered', () => {
      throw new Error('planted-secret');
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await pipeline.caughtUp();
    await waitFor(() => warnings.length >= 3);
    process.off('warning', warn);
    expect(inserted(applied, 'id')).toEqual([1]);
    expect(String(warnings)).not.toContain('planted-secret');
  });
});
