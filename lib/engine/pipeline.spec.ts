import { AsyncLocalStorage } from 'node:async_hooks';
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { MemoryKeeper } from '../../test/support/keeper.js';
import { waitFor } from '../../test/support/wait-for.js';
import type { ConnectionOption } from './options/pipeline-options.js';
import { Pipeline } from './pipeline.js';
import { PipelineStateError } from './pipeline/state-error.js';

const NOWHERE = { host: '127.0.0.1', port: 1, user: 'none', database: 'none' };

function pipelineTo(connection: ConnectionOption): Pipeline {
  const pipeline = new Pipeline('orders', {
    connection,
    slotName: 'orders',
    publication: 'p',
  });
  pipeline.attach({
    name: 'Sink',
    checkpoint: { kind: 'keeper', keeper: new MemoryKeeper() },
    transaction: async () => {},
  });
  return pipeline;
}

describe('Pipeline', () => {
  it('keeps the context of whoever starts it out of its work', async () => {
    const requests = new AsyncLocalStorage<string>();
    const seen: (string | undefined)[] = [];
    const pipeline = pipelineTo(() => {
      seen.push(requests.getStore());
      return NOWHERE;
    });
    requests.run('of a request', () => pipeline.start());
    await waitFor(() => seen.length > 0);
    await pipeline.stop();
    expect(seen[0]).toBeUndefined();
  });

  it('refuses a second sink, and a start without one', () => {
    const pipeline = pipelineTo(NOWHERE);
    expect(() =>
      pipeline.attach({
        name: 'Other',
        checkpoint: { kind: 'reader', read: async () => null },
        transaction: async () => {},
      }),
    ).toThrow(PipelineStateError);
    const bare = new Pipeline('bare', {
      connection: NOWHERE,
      slotName: 's',
      publication: 'p',
    });
    expect(() => bare.start()).toThrow('has no sink');
  });

  it('is connecting until it has streamed once, with reason and next attempt in its status', async () => {
    const pipeline = pipelineTo(NOWHERE);
    const attempts: number[] = [];
    pipeline.on('reconnect', ({ attempt }) => attempts.push(attempt));
    pipeline.start();
    await waitFor(() => attempts.length > 0);
    expect(pipeline.status()).toMatchObject({
      pipeline: 'orders',
      slotName: 'orders',
      state: 'connecting',
      reason: 'connection lost (ECONNREFUSED)',
      attempt: 1,
      durableLsn: null,
    });
    expect(Date.parse(pipeline.status().nextRetryAt ?? '')).not.toBeNaN();
    await pipeline.stop();
    expect(pipeline.status()).toMatchObject({
      state: 'stopped',
      reason: null,
      nextRetryAt: null,
    });
  });

  it('rejects those who wait when it is stopped, and those who ask while it does not run', async () => {
    const pipeline = pipelineTo(NOWHERE);
    pipeline.start();
    const streaming = pipeline.whenStreaming();
    const caught = pipeline.caughtUp(1n);
    await pipeline.stop();
    await expect(streaming).rejects.toThrow(PipelineStateError);
    await expect(caught).rejects.toThrow(PipelineStateError);
    await expect(pipeline.whenStreaming()).rejects.toThrow('does not run');
    await expect(pipeline.caughtUp()).rejects.toThrow('does not run');
  });

  it('shows no secret of its connection to whoever prints it', async () => {
    const pipeline = pipelineTo({ ...NOWHERE, password: 'planted-secret' });
    pipeline.start();
    const shown = [
      inspect(pipeline, { depth: 20, showHidden: true, getters: true }),
      JSON.stringify(pipeline),
      JSON.stringify(pipeline.status()),
    ].join();
    await pipeline.stop();
    expect(shown).toContain('orders');
    expect(shown).not.toContain('planted-secret');
  });

  it('can be stopped by whoever hears that it reconnects', async () => {
    const pipeline = pipelineTo(NOWHERE);
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    process.on('unhandledRejection', note);
    pipeline.on('reconnect', () => void pipeline.stop());
    pipeline.start();
    await waitFor(() => pipeline.state === 'stopped');
    await new Promise((resolve) => setImmediate(resolve));
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
  });

  it('outlives a listener that throws or rejects', async () => {
    const pipeline = pipelineTo(NOWHERE);
    const states: string[] = [];
    pipeline.on('state', () => {
      throw new Error('of a listener');
    });
    const rejecting = (): unknown =>
      Promise.reject(new Error('of an async listener'));
    pipeline.on('state', rejecting);
    pipeline.on('state', ({ to }) => states.push(to));
    pipeline.start();
    await pipeline.stop();
    expect(states).toEqual(['connecting', 'draining', 'stopped']);
  });
});
