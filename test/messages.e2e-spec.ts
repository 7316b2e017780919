import { describe, expect, it } from 'vitest';
import { formatLsn, parseLsn } from '../lib/engine/model/lsn.js';
import { capture, inserted, type CaptureOptions } from './support/capture.js';
import { range } from './support/copy.js';
import { haltedFor } from './support/halted.js';
import { confirmedUpTo, readSlot } from './support/logical-slot.js';
import {
  emit,
  emitInTransaction,
  taking,
  type Taking,
  type TakingOptions,
} from './support/messages.js';
import { present } from './support/present.js';
import { sourceAndTarget, writeNoise } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { deferred, waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '4s' } });

/** A streaming pipeline that asks for messages. */
async function streaming(options: TakingOptions = {}): Promise<Taking> {
  const captured = taking(await sourceAndTarget(suite), options);
  captured.pipeline.start();
  await captured.pipeline.whenStreaming();
  return captured;
}

async function confirmed(source: TestDatabase): Promise<bigint> {
  const slot = await readSlot(source, `slot_${source.name}`);
  return present(slot?.confirmedFlushLsn);
}

describe('a message outside transactions', () => {
  it('goes to the handler of messages, with the position that the server gave, and to nobody else', async () => {
    const { source, pipeline, message, calls } = await streaming();
    const told: unknown[] = [];
    pipeline.on('message', (event) => told.push(event));
    const content = Buffer.from([0, 1, 0, 255]);
    const lsn = await emit(source, 'Größe 😀', content);
    await pipeline.caughtUp(lsn);
    expect(message.calls).toMatchObject([
      {
        transactional: false,
        lsn,
        prefix: 'Größe 😀',
        content,
        ordinal: null,
      },
    ]);
    expect(calls).toEqual([]);
    expect(told).toEqual([{ lsn, bytes: 4 }]);
    expect(pipeline.status()).toMatchObject({
      transactions: 0,
      inflightBytes: 0,
      handler: null,
    });
  });

  it('is a copy of its bytes, at the position that the server gave, however long it is (D07)', async () => {
    const { source, pipeline, message } = await streaming();
    // Lengths around a page of WAL, so that records end in every part of one.
    const lengths = [
      ...range(0, 300).map((i) => (i * 613) % 20_000),
      1024 * 1024,
    ];
    const positions: bigint[] = [];
    for (const [i, length] of lengths.entries())
      positions.push(await emit(source, 'x', Buffer.alloc(length, i % 256)));
    await pipeline.caughtUp(present(positions.at(-1)));
    expect(message.calls.map(({ lsn }) => lsn)).toEqual(positions);
    const wrong = message.calls.filter(
      ({ content }, i) =>
        content.length !== lengths[i] ||
        content.some((byte) => byte !== i % 256),
    );
    expect(wrong).toEqual([]);
  });

  it('comes in the order of the WAL: before the transaction in which it was written, which may be rolled back', async () => {
    const order: unknown[] = [];
    const { source, pipeline } = await streaming({
      work: async ({ prefix }) => void order.push(prefix),
      apply: async (transaction) =>
        void order.push(...inserted([transaction], 'id')),
    });
    const one = await source.connect();
    const other = await source.connect();
    await one.query('begin');
    await one.query('insert into t values (1)');
    await emit(one, 'of one');
    await other.query('begin');
    await other.query('insert into t values (2)');
    await emit(other, 'of other');
    await source.query('insert into t values (3)');
    await emit(source, 'between');
    await one.query('commit');
    await other.query('rollback');
    await pipeline.caughtUp();
    expect(order).toEqual(['of one', 'of other', 3, 'between', 1]);
  });

  it('does not wait for a transaction of other messages and changes to grow: nothing of it is sent before its commit', async () => {
    const { source, pipeline, applied, message } = await streaming({
      maxInflightBytes: 64 * 1024,
      async apply({ changes }) {
        for await (const change of changes) void change;
      },
    });
    const client = await source.connect();
    await client.query('begin');
    for (const id of range(1, 20)) {
      await client.query("insert into t values ($1, repeat('x', 20000))", [id]);
      await emitInTransaction(client, 'p', `${id}`);
      await emit(client, 'p', `${id}`);
    }
    await client.query('commit');
    await pipeline.caughtUp();
    expect(message.calls).toHaveLength(20);
    expect(applied).toHaveLength(1);
    expect(applied[0]?.messages).toHaveLength(20);
    expect(applied[0]?.commitLsn).toBeGreaterThanOrEqual(
      present(message.calls.at(-1)).lsn,
    );
  });

  it('waits while the sink holds a transaction, and holds what follows', async () => {
    const gates = [deferred(), deferred()];
    const { source, pipeline, applied, calls, message } = await streaming({
      work: () => present(gates[1]).promise,
      apply: (transaction) =>
        inserted([transaction], 'id').includes(1)
          ? present(gates[0]).promise
          : Promise.resolve(),
    });
    await source.query('insert into t values (1)');
    const lsn = await emit(source, 'p');
    await source.query('insert into t values (2)');
    await waitFor(() => calls.length === 1);
    await waitFor(() => pipeline.status().inflightBytes > 0);
    expect(message.calls).toEqual([]);
    gates[0]?.resolve();
    await waitFor(() => message.calls.length === 1);
    expect(pipeline.status().handler).not.toBeNull();
    expect(pipeline.status().deliveredLsn).toBe(formatLsn(lsn));
    expect(inserted(calls, 'id')).toEqual([1]);
    gates[1]?.resolve();
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1, 2]);
    expect(message.calls).toMatchObject([{ lsn }]);
  });
});

describe('the position of a message', () => {
  it.each<[string, Partial<CaptureOptions>]>([
    ['in a table', {}],
    ['of its own', { checkpoint: { kind: 'reader', read: async () => null } }],
  ])(
    'is not confirmed while the sink holds it, whatever is written meanwhile, and passes afterwards (checkpoint %s)',
    async (_, checkpoint) => {
      const gate = deferred();
      const { source, pipeline, message } = await streaming({
        ...checkpoint,
        work: () => gate.promise,
      });
      const lsn = await emit(source, 'p');
      await waitFor(() => message.calls.length === 1);
      const began = performance.now();
      let received = 0n;
      while (performance.now() - began < 1_500) {
        const end = await writeNoise(source, 200);
        expect(await confirmed(source)).toBeLessThan(lsn);
        const { receivedLsn, durableLsn } = pipeline.status();
        received = present(parseLsn(present(receivedLsn)));
        expect(parseLsn(present(durableLsn))).toBeLessThan(lsn);
        expect(end).toBeGreaterThan(lsn);
      }
      // The server has said meanwhile that it is further.
      expect(received).toBeGreaterThan(lsn);
      const end = await writeNoise(source, 10);
      gate.resolve();
      await confirmedUpTo(source, `slot_${source.name}`, end);
      expect(message.calls).toHaveLength(1);
    },
  );

  it('never enters the checkpoint as a commit, and is not sent again after a stop', async () => {
    const { source, target, pipeline, applied, message } = await streaming();
    await source.query('insert into t values (1)');
    await waitFor(() => applied.length === 1);
    const commit = () =>
      target.query('select commit_lsn from replicant_checkpoints');
    const before = await commit();
    const lsn = await emit(source, 'p');
    await pipeline.caughtUp(lsn);
    await pipeline.stop();
    expect(await commit()).toEqual(before);
    expect(await confirmed(source)).toBeGreaterThanOrEqual(lsn);
    pipeline.start();
    await pipeline.caughtUp();
    expect(message.calls).toHaveLength(1);
  });

  it('may be where a commit record starts: that transaction is still delivered when only the message was handled', async () => {
    const databases = await sourceAndTarget(suite);
    const { source } = databases;
    // A writer beside it, such as autovacuum, may come in between.
    for (let id = 1; ; id++) {
      const failing = taking(databases, {
        apply: () => Promise.reject(new Error('not yet')),
      });
      failing.pipeline.start();
      await failing.pipeline.whenStreaming();
      const client = await source.connect();
      await client.query('begin');
      await client.query('insert into t values ($1)', [id]);
      const lsn = await emit(client, 'p');
      await client.query('commit');
      const { lsn: failed } = await haltedFor(failing.pipeline, 'sink_failed');
      expect(failing.message.calls).toMatchObject([{ lsn }]);

      // The handler of the message alone: its position is confirmed at the stop.
      const entered = deferred();
      const held = deferred();
      const stopping = taking(databases, {
        apply: () => {
          entered.resolve();
          return held.promise;
        },
      });
      stopping.pipeline.start();
      await entered.promise;
      const stopped = stopping.pipeline.stop();
      held.reject(new Error('not now'));
      await stopped;
      expect(await confirmed(source)).toBe(lsn);

      const whole = taking(databases);
      whole.pipeline.start();
      await whole.pipeline.caughtUp();
      await whole.pipeline.stop();
      expect(inserted(whole.applied, 'id')).toEqual([id]);
      expect(whole.message.calls).toEqual([]);
      if (failed === lsn) break;
      expect(id, 'attempts').toBeLessThan(10);
    }
  });

  it('of one that no method takes is passed over, and confirmed', async () => {
    const message = {
      takes: (prefix: string) => prefix === 'mine',
      handle: () => Promise.reject(new Error('not mine')),
    };
    const databases = await sourceAndTarget(suite);
    const { pipeline, checkpoints } = capture(databases.source, {
      target: databases.target,
      messages: true,
      sink: { message },
    });
    pipeline.start();
    await pipeline.whenStreaming();
    const lsn = await emit(databases.source, 'other');
    await pipeline.caughtUp(lsn);
    await confirmedUpTo(databases.source, `slot_${databases.source.name}`, lsn);
    expect(await checkpoints.load()).toMatchObject({ commitLsn: null });
    expect(pipeline.halt).toBeNull();
    await emit(databases.source, 'mine');
    await haltedFor(pipeline, 'sink_failed');
  });

  it('does not move the slot of a log, which has the message again after a restart; one of a transaction does', async () => {
    const { source, pipeline, applied, message } = await streaming({
      sink: { kind: 'appendLog', slotOrigin: async () => {} },
    });
    await source.query('insert into t values (1)');
    await waitFor(() => applied.length === 1);
    const end = present(applied[0]?.commitEndLsn);
    const lsn = await emit(source, 'p');
    await pipeline.caughtUp(lsn);
    await pipeline.stop();
    expect(await confirmed(source)).toBe(end);
    pipeline.start();
    await waitFor(() => message.calls.length === 2);
    await emitInTransaction(source, 'heartbeat');
    await waitFor(() => applied.length === 2);
    await pipeline.stop();
    expect(await confirmed(source)).toBe(present(applied[1]?.commitEndLsn));
    pipeline.start();
    await pipeline.caughtUp();
    expect(message.calls.map((one) => one.lsn)).toEqual([lsn, lsn]);
  });
});
