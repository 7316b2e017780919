import { describe, expect, it } from 'vitest';
import { capture, inserted } from './support/capture.js';
import { range } from './support/copy.js';
import { haltedFor } from './support/halted.js';
import { lifeline } from './support/killed-client.js';
import { confirmedUpTo, readSlot } from './support/logical-slot.js';
import {
  flushedLsn,
  sourceAndTarget,
  writeNoise,
} from './support/source-and-target.js';
import { recordStatusUpdates } from './support/status-tap.js';
import { present } from './support/present.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { deferred, waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '4s' } });

async function confirmed(source: TestDatabase): Promise<bigint> {
  const slot = await readSlot(source, `slot_${source.name}`);
  return slot?.confirmedFlushLsn ?? 0n;
}

describe('while the sink holds a transaction', () => {
  it('neither timer, keepalive nor reading confirms anything, and a kill loses nothing (A01, A04, A18, A23)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const line = await lifeline(source);
    const updates = recordStatusUpdates(line.proxy);
    const first = capture(source, {
      target,
      connection: line.connection,
      drainTimeout: 100,
      apply: () => deferred().promise,
    });
    first.pipeline.start();
    await first.pipeline.whenStreaming();
    const start = await confirmed(source);
    await source.query('insert into t select generate_series(1, 100)');
    await source.query('insert into t select generate_series(101, 200)');
    await waitFor(() => first.calls.length === 1);
    const noiseEnd = await writeNoise(source);
    const held = updates.length;
    await waitFor(
      () =>
        updates.length >= held + 3 &&
        present(updates.at(-1)).written >= noiseEnd,
      { message: 'status updates beyond the transactions' },
    );
    expect(await confirmed(source)).toBe(start);
    expect(new Set(updates.map(({ flushed }) => flushed))).toEqual(
      new Set([start]),
    );
    await line.kill();

    const second = capture(source, { target });
    second.pipeline.start();
    await second.pipeline.caughtUp();
    expect(inserted(second.applied, 'id')).toEqual(range(1, 200));
    expect(first.applied).toEqual([]);
  });

  it('sends write, flush and apply as what was received and what is durable (A06)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const line = await lifeline(source);
    const updates = recordStatusUpdates(line.proxy);
    let gate = deferred();
    const { pipeline, calls } = capture(source, {
      target,
      connection: line.connection,
      apply: () => gate.promise,
    });
    pipeline.start();
    await pipeline.whenStreaming();
    for (const id of [1, 2]) {
      const start = await confirmed(source);
      updates.length = 0;
      await source.query('insert into t values ($1)', [id]);
      await waitFor(() => calls.length === id);
      const { commitLsn, commitEndLsn } = present(calls[id - 1]);
      const end = present(commitEndLsn);
      const received = await waitFor(() =>
        updates.find(({ written }) => written >= end),
      );
      // An idle position may have been confirmed before the transaction, and nothing of it may be.
      expect(received.flushed).toBeGreaterThanOrEqual(start);
      expect(received.flushed).toBeLessThanOrEqual(commitLsn);
      gate.resolve();
      await waitFor(() => updates.some(({ flushed }) => flushed >= end));
      expect(
        updates.filter(({ flushed }) => flushed > commitLsn && flushed < end),
      ).toEqual([]);
      expect(
        updates.filter(
          ({ applied, flushed, written }) =>
            applied !== flushed || flushed > written,
        ),
      ).toEqual([]);
      // The next connection begins with the slot's own position.
      await pipeline.stop();
      gate = deferred();
      pipeline.start();
      await pipeline.whenStreaming();
    }
    gate.resolve();
  });
});

it('never confirms beyond what the server sent (A24)', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const line = await lifeline(source);
  const updates = recordStatusUpdates(line.proxy);
  const { pipeline } = capture(source, {
    target,
    connection: line.connection,
    // A checkpoint table on the same server would write: its WAL would hide a position that is too high.
    checkpoint: { kind: 'reader', read: () => Promise.resolve(null) },
  });
  pipeline.start();
  await pipeline.whenStreaming();
  for (const id of range(1, 5)) {
    await source.query('insert into t values ($1)', [id]);
    await pipeline.caughtUp();
    const end = await flushedLsn(source);
    await confirmedUpTo(source, `slot_${source.name}`, end);
    // Autovacuum may have written in the meantime: what was sent is at most what is there now.
    const now = await flushedLsn(source);
    expect(
      updates.filter(({ written, flushed, applied }) =>
        [written, flushed, applied].some((position) => position > now),
      ),
    ).toEqual([]);
  }
});

it('delivers nothing after a transaction that the sink rejects, until the sink takes it (A02)', async () => {
  const { source, target } = await sourceAndTarget(suite);
  let failures = 0;
  let healed = false;
  const { pipeline, applied, calls } = capture(source, {
    target,
    async apply(transaction) {
      if (healed || !inserted([transaction], 'id').includes(3)) return;
      failures += 1;
      throw new Error('the sink is broken');
    },
  });
  pipeline.start();
  await pipeline.whenStreaming();
  await source.query(
    'do $$ begin for i in 1..10 loop insert into t values (i); commit; end loop; end $$',
  );
  for (const failure of [1, 2]) {
    await haltedFor(pipeline, 'sink_failed');
    expect(failures).toBe(failure);
    expect(inserted(applied, 'id')).toEqual([1, 2]);
    expect(inserted(calls, 'id').at(-1)).toBe(3);
    expect(await confirmed(source)).toBeLessThan(
      present(calls.at(-1)?.commitEndLsn),
    );
    expect(await confirmed(source)).toBeGreaterThanOrEqual(
      present(applied.at(-1)?.commitEndLsn),
    );
    if (failure === 2) healed = true;
    pipeline.start();
  }
  await pipeline.caughtUp();
  expect(inserted(applied, 'id')).toEqual(range(1, 10));
});
