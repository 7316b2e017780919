import { describe, expect, it, onTestFinished } from 'vitest';
import { capture, inserted } from './support/capture.js';
import { readSlot } from './support/logical-slot.js';
import {
  StatusUpdateReader,
  type StatusUpdate,
} from './support/status-updates.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import { TcpProxy } from './support/tcp-proxy.js';
import type {
  DatabaseConnection,
  TestDatabase,
} from './support/test-database.js';
import { deferred, waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '4s' } });
const INTERVAL_MS = 1_000;

/** A way to the source on which every status update is seen. */
async function watched(
  source: TestDatabase,
): Promise<{ connection: DatabaseConnection; updates: StatusUpdate[] }> {
  const proxy = await TcpProxy.start(suite.server.connection);
  onTestFinished(() => proxy.close());
  const readers = new Map<number, StatusUpdateReader>();
  const updates: StatusUpdate[] = [];
  proxy.tap = (bytes, direction, number) => {
    if (direction !== 'client-to-server') return;
    const reader = readers.get(number) ?? new StatusUpdateReader();
    readers.set(number, reader);
    updates.push(...reader.read(bytes));
  };
  return { connection: { ...source.connection, port: proxy.port }, updates };
}

describe('status updates', () => {
  it('tell the position of the slot until something is durable, and never 0 or what was received (C09)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { connection, updates } = await watched(source);
    const release = deferred();
    const { pipeline, applied } = capture(source, {
      target,
      connection,
      apply: () => release.promise,
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await pipeline.stop();
    const slot = await readSlot(suite.server, pipeline.options.slotName);
    const start = slot?.confirmedFlushLsn ?? 0n;
    await source.query(
      'do $$ begin for i in 1..500 loop insert into t values (i); commit; end loop; end $$',
    );
    updates.length = 0;
    pipeline.start();
    await waitFor(() => updates.length >= 3);
    expect(updates.map(({ flushed }) => flushed)).toEqual(
      updates.map(() => start),
    );
    expect(updates.every(({ applied: at }) => at === start)).toBe(true);
    expect(updates.at(-1)?.written).toBeGreaterThan(start);
    expect(
      (await readSlot(suite.server, pipeline.options.slotName))
        ?.confirmedFlushLsn,
    ).toBe(start);
    release.resolve();
    await pipeline.caughtUp();
    expect(applied).toHaveLength(500);
    for (const { flushed, written } of updates)
      expect(flushed).toBeLessThanOrEqual(written);
  });

  it('go out at least every quarter of the timeout while a stream is dense, and the slot follows (C03)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { connection, updates } = await watched(source);
    const { pipeline, applied } = capture(source, { target, connection });
    pipeline.start();
    await pipeline.whenStreaming();
    let writing = true;
    let id = 0;
    const writer = (async () => {
      while (writing) {
        id += 1;
        await source.query('insert into t values ($1)', [id]);
      }
    })();
    const slots: bigint[] = [];
    const end = performance.now() + 3 * INTERVAL_MS;
    while (performance.now() < end) {
      const slot = await readSlot(suite.server, pipeline.options.slotName);
      slots.push(slot?.confirmedFlushLsn ?? 0n);
      await new Promise((resolve) => setTimeout(resolve, INTERVAL_MS));
    }
    writing = false;
    await writer;
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toHaveLength(id);
    expect(slots.length).toBeGreaterThanOrEqual(3);
    for (const [index, slot] of slots.entries())
      if (index > 0) expect(slot).toBeGreaterThan(slots[index - 1] ?? slot);
    const gaps = updates
      .slice(1)
      .map(({ at }, i) => at - (updates[i]?.at ?? at));
    expect(Math.max(...gaps)).toBeLessThan(INTERVAL_MS * 2);
  });

  it('go out as often while a stream is dense and the sink takes nothing, before the server has to ask (C03)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { connection, updates } = await watched(source);
    const release = deferred();
    const { pipeline, calls } = capture(source, {
      target,
      connection,
      apply: () => release.promise,
    });
    pipeline.start();
    await pipeline.whenStreaming();
    const end = performance.now() + 4 * INTERVAL_MS;
    for (let id = 1; performance.now() < end; id += 1)
      await source.query('insert into t values ($1)', [id]);
    expect(calls).toHaveLength(1);
    const times = [...updates.map(({ at }) => at), performance.now()];
    const gaps = times.slice(1).map((at, index) => at - (times[index] ?? at));
    expect(updates.length).toBeGreaterThanOrEqual(3);
    // The server asks after half of its timeout.
    expect(Math.max(...gaps)).toBeLessThan(INTERVAL_MS * 2);
    release.resolve();
  });

  it('say at a stop what is durable before the copy ends (A15)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { connection, updates } = await watched(source);
    const { pipeline, applied } = capture(source, { target, connection });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await waitFor(() => applied.length === 1);
    await pipeline.stop();
    const end = applied[0]?.commitEndLsn ?? 0n;
    expect(updates.at(-1)?.flushed).toBeGreaterThanOrEqual(end);
    const slot = await readSlot(suite.server, pipeline.options.slotName);
    expect(slot?.confirmedFlushLsn).toBeGreaterThanOrEqual(end);
    expect(slot?.active).toBe(false);
  });
});
