import { expect, it } from 'vitest';
import { capture, type CaptureOptions, inserted } from './support/capture.js';
import { range } from './support/copy.js';
import { lifeline } from './support/killed-client.js';
import { confirmedUpTo, currentLsn, readSlot } from './support/logical-slot.js';
import { present } from './support/present.js';
import { sourceAndTarget, writeNoise } from './support/source-and-target.js';
import { recordStatusUpdates } from './support/status-tap.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { parseLsn } from '../lib/engine/model/lsn.js';
import { CheckpointTable } from '../lib/engine/checkpoint/checkpoint-table.js';
import type { CheckpointQuery } from '../lib/engine/checkpoint/checkpoint-query.js';
import { deferred, waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '4s' } });

async function confirmed(source: TestDatabase): Promise<bigint> {
  const slot = await readSlot(source, `slot_${source.name}`);
  return slot?.confirmedFlushLsn ?? 0n;
}

async function stored(target: TestDatabase): Promise<bigint> {
  const [row] = await target.query<{ lsn: string }>(
    'select confirmed_lsn::text as lsn from replicant_checkpoints',
  );
  return parseLsn(row?.lsn ?? '') ?? 0n;
}

it('waits with the confirmation of an idle position until the store has taken it', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const line = await lifeline(source);
  const updates = recordStatusUpdates(line.proxy);
  const { pipeline } = capture(source, {
    target,
    connection: line.connection,
  });
  pipeline.start();
  await pipeline.caughtUp();
  const blocker = await target.connect();
  await blocker.query(
    'begin; lock table replicant_checkpoints in exclusive mode',
  );
  const before = await stored(target);
  const noiseEnd = await writeNoise(source);
  const seen = updates.length;
  await waitFor(
    () =>
      updates.length >= seen + 3 && present(updates.at(-1)).written >= noiseEnd,
    { message: 'status updates beyond the noise' },
  );
  expect(await confirmed(source)).toBeLessThanOrEqual(before);
  expect(await stored(target)).toBe(before);
  await blocker.query('commit');
  await confirmedUpTo(source, `slot_${source.name}`, noiseEnd);
  expect(await stored(target)).toBeGreaterThanOrEqual(noiseEnd);
});

it.each<[string, Partial<CaptureOptions>]>([
  ['transaction', { sink: { transaction: async () => {} } }],
  [
    'batch',
    {
      batchDelivery: { maxTransactions: 1 },
      sink: { batch: async () => {} },
    },
  ],
  [
    'batch of several',
    {
      batchDelivery: { maxTransactions: 2, maxDelayMs: 60_000 },
      sink: { batch: async () => {} },
    },
  ],
])(
  'stores the end of a %s for which the sink did not advance, and only then confirms it',
  async (_, options) => {
    const { source, target } = await sourceAndTarget(suite);
    const line = await lifeline(source);
    const updates = recordStatusUpdates(line.proxy);
    const { pipeline } = capture(source, {
      target,
      connection: line.connection,
      ...options,
    });
    pipeline.start();
    await pipeline.caughtUp();
    const blocker = await target.connect();
    await blocker.query(
      'begin; lock table replicant_checkpoints in exclusive mode',
    );
    const before = await stored(target);
    for (const id of [1, 2])
      await source.query('insert into t values ($1)', [id]);
    const end = await currentLsn(source);
    await waitFor(() => pipeline.status().transactions === 2);
    const seen = updates.length;
    await waitFor(() => updates.length >= seen + 3);
    expect(await confirmed(source)).toBeLessThanOrEqual(before);
    await blocker.query('commit');
    await confirmedUpTo(source, `slot_${source.name}`, end);
    expect(await stored(target)).toBeGreaterThanOrEqual(end);
  },
);

it('stores the end of a transaction that was read while it arrived, although the sink had advanced before, and only then confirms it', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const release = deferred();
  const ends: unknown[] = [];
  class SlowTable extends CheckpointTable {
    override async confirm(lsn: bigint): Promise<void> {
      if (ends.length > 0) await release.promise;
      await super.confirm(lsn);
    }
  }
  const query: CheckpointQuery = (sql, values) => target.query(sql, values);
  const keeper = new SlowTable(query);
  const line = await lifeline(source);
  const updates = recordStatusUpdates(line.proxy);
  const { pipeline } = capture(source, {
    target,
    connection: line.connection,
    maxInflightBytes: 64 * 1024,
    checkpoint: { kind: 'keeper', keeper },
    async apply(transaction) {
      await keeper.advance(query, transaction);
      for await (const _ of transaction.changes);
      ends.push(transaction.commitEndLsn);
    },
  });
  pipeline.start();
  await pipeline.whenStreaming();
  const before = await confirmed(source);
  await source.query(
    "insert into t select g, repeat('x', 1000) from generate_series(1, 2000) g",
  );
  await waitFor(() => ends.length === 1);
  const seen = updates.length;
  await waitFor(() => updates.length >= seen + 3, {
    message: 'status updates after the transaction',
  });
  expect(await confirmed(source)).toBe(before);
  release.resolve();
  const [end] = ends;
  if (typeof end !== 'bigint') throw new Error('The end was not read.');
  await confirmedUpTo(source, `slot_${source.name}`, end);
  expect(await stored(target)).toBeGreaterThanOrEqual(end);
});

it('never lets the slot pass the stored position, under load and idle', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const { pipeline, applied } = capture(source, { target });
  pipeline.start();
  await pipeline.whenStreaming();
  const written = new AbortController();
  const seen = new Set<bigint>();
  const sample = async (): Promise<void> => {
    while (!written.signal.aborted) {
      // The slot first: what it has passed must have been stored by then.
      const slot = await confirmed(source);
      expect(slot).toBeLessThanOrEqual(await stored(target));
      seen.add(slot);
    }
  };
  const work = async (): Promise<void> => {
    try {
      let before = 0;
      for (const id of range(1, 150)) {
        await source.query('insert into t values ($1)', [id]);
        if (id % 50 === 0) await writeNoise(source, 500);
        if (id % 25 !== 0) continue;
        // However busy the machine: the slot is seen at work after every part.
        await waitFor(() => seen.size > before);
        before = seen.size;
      }
      await confirmedUpTo(
        source,
        `slot_${source.name}`,
        await writeNoise(source, 500),
      );
    } finally {
      written.abort();
    }
  };
  await Promise.all([sample(), work()]);
  expect(seen.size).toBeGreaterThan(5);
  expect(inserted(applied, 'id')).toEqual(range(1, 150));
});
