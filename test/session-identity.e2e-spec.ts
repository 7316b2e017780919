import { describe, expect, it } from 'vitest';
import type { Sink } from '../lib/engine/deliver/sink.js';
import { capture, inserted } from './support/capture.js';
import { haltedFor, slotAndCheckpoint } from './support/halted.js';
import { readSlot, walsenderPid } from './support/logical-slot.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '4s' } });

describe('@OnSessionIdentity', () => {
  it('is asked about the true server before the checkpoint is read, on every connect', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const slotName = `slot_${source.name}`;
    const log: string[] = [];
    const asked: unknown[] = [];
    const { pipeline, applied } = capture(source, {
      target,
      checkpoint: {
        kind: 'reader',
        async read() {
          log.push('checkpoint');
          return null;
        },
      },
      sink: {
        async sessionIdentity({ flushedLsn, ...identity }, context) {
          log.push('identity');
          expect(flushedLsn).toBeGreaterThan(0n);
          asked.push({ ...identity, ...context });
        },
      },
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await waitFor(() => applied.length === 1);
    // Read for the decision, and again once the stream has begun.
    expect(log).toEqual(['identity', 'checkpoint', 'checkpoint']);
    await source.query('select pg_terminate_backend($1)', [
      await walsenderPid(source, slotName),
    ]);
    await waitFor(() => log.length === 6);
    expect(log.slice(3)).toEqual(['identity', 'checkpoint', 'checkpoint']);
    const [server] = await source.query<{ id: string; timeline: number }>(
      'select (select system_identifier::text from pg_control_system()) as id, (select timeline_id from pg_control_checkpoint()) as timeline',
    );
    const truth = {
      systemIdentifier: server?.id,
      timeline: server?.timeline,
      database: source.name,
      pipeline: 'test',
      slotName,
      publications: ['p'],
    };
    expect(asked).toEqual([truth, truth]);
  });

  it.each<[string, NonNullable<Sink['sessionIdentity']>]>([
    ['rejects', () => Promise.reject(new RangeError('the secret'))],
    [
      'throws',
      () => {
        throw new RangeError('the secret');
      },
    ],
    ['returns no promise', () => true],
  ])('that %s halts, and nothing is read or created', async (how, refuse) => {
    const { source, target } = await sourceAndTarget(suite);
    let judge: NonNullable<Sink['sessionIdentity']> = refuse;
    const { pipeline, applied } = capture(source, {
      target,
      sink: { sessionIdentity: (...given) => judge(...given) },
    });
    for (let round = 0; round < 2; round++) {
      pipeline.start();
      const halt = await haltedFor(pipeline, 'session_identity/rejected');
      expect(`${halt.detail} ${JSON.stringify(halt)}`).not.toContain('secret');
      expect(halt.sinkError() instanceof RangeError).toBe(
        how !== 'returns no promise',
      );
      expect(await slotAndCheckpoint(source, target)).toEqual({
        slots: [],
        checkpoints: [],
      });
    }
    judge = async () => {};
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1]);
  });

  it('that rejects on a reconnect halts, and slot and checkpoint stay as they are', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const slotName = `slot_${source.name}`;
    let refused = false;
    const { pipeline } = capture(source, {
      target,
      sink: {
        async sessionIdentity() {
          if (refused) throw new Error('another one');
        },
      },
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await pipeline.caughtUp();
    refused = true;
    await source.query('select pg_terminate_backend($1)', [
      await walsenderPid(source, slotName),
    ]);
    await haltedFor(pipeline, 'session_identity/rejected');
    const left = await slotAndCheckpoint(source, target);
    expect(await readSlot(source, slotName)).not.toBeNull();
    pipeline.start();
    await haltedFor(pipeline, 'session_identity/rejected');
    expect(await slotAndCheckpoint(source, target)).toEqual(left);
  });
});
