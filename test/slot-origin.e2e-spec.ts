import { describe, expect, it } from 'vitest';
import { deferred } from '../lib/engine/model/deferred.js';
import type { Lsn } from '../lib/engine/model/lsn.js';
import { parseLsn } from '../lib/engine/model/lsn.js';
import type { SlotOriginContext } from '../lib/engine/model/slot-origin.js';
import { capture, inserted } from './support/capture.js';
import { haltedFor, slotAndCheckpoint } from './support/halted.js';
import { readSlot, walsenderPid } from './support/logical-slot.js';
import { present } from './support/present.js';
import { flushedLsn, sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '4s' } });

interface Asked extends SlotOriginContext {
  readonly origin: Lsn;
}

async function furthestStored(target: TestDatabase): Promise<Lsn> {
  const [row] = await target.query<{ lsn: string }>(
    'select greatest(commit_lsn, confirmed_lsn)::text as lsn from replicant_checkpoints',
  );
  return present(parseLsn(row?.lsn ?? '') ?? undefined);
}

describe('@OnSlotOrigin', () => {
  it('that answers after the stop stores nothing any more', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const question = deferred<void>();
    const asked = deferred<void>();
    const answered = deferred<void>();
    const { pipeline, checkpoints } = capture(source, {
      target,
      sink: {
        async slotOrigin() {
          asked.resolve();
          await question.promise;
          setTimeout(() => answered.resolve(), 500);
        },
      },
    });
    pipeline.start();
    await asked.promise;
    await pipeline.stop();
    await pipeline.dropSlot();
    question.resolve();
    await answered.promise;
    expect(await checkpoints.load()).toBeNull();
    pipeline.start();
    await pipeline.whenStreaming();
  });

  it('is asked about a new slot, before its position is stored, and about one that was there', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const slotName = `slot_${source.name}`;
    const asked: Asked[] = [];
    const stored: number[] = [];
    const before = await flushedLsn(source);
    const { pipeline, applied } = capture(source, {
      target,
      sink: {
        async slotOrigin(origin, context) {
          asked.push({ origin, ...context });
          const rows = await target.query('select from replicant_checkpoints');
          stored.push(rows.length);
        },
      },
    });
    pipeline.start();
    await pipeline.whenStreaming();
    const context = { pipeline: 'test', slotName };
    const { origin } = present(asked[0]);
    expect(asked).toEqual([{ origin, ...context, reused: false }]);
    expect(origin).toBeGreaterThanOrEqual(before);
    expect(origin).toBeLessThanOrEqual(await flushedLsn(source));
    expect(stored).toEqual([0]);

    await source.query('insert into t values (1)');
    await pipeline.caughtUp();
    await pipeline.stop();
    const confirmed = present(await readSlot(source, slotName));
    const expected = [
      await furthestStored(target),
      present(confirmed.confirmedFlushLsn ?? undefined),
    ].reduce((one, other) => (one > other ? one : other));
    pipeline.start();
    await pipeline.whenStreaming();
    expect(asked[1]).toEqual({ origin: expected, ...context, reused: true });

    await source.query('select pg_terminate_backend($1)', [
      await walsenderPid(source, slotName),
    ]);
    await waitFor(() => asked.length === 3);
    await pipeline.whenStreaming();
    expect(present(asked[2]).origin).toBeGreaterThanOrEqual(expected);
    await source.query('insert into t values (2)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1, 2]);
  });

  it('is asked about the position of a slot that was created by hand', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const slotName = `slot_${source.name}`;
    await source.query(
      `select pg_create_logical_replication_slot($1, 'pgoutput')`,
      [slotName],
    );
    await source.query('insert into t values (1)');
    const slot = present(await readSlot(source, slotName));
    const asked: unknown[] = [];
    const { pipeline, applied } = capture(source, {
      target,
      sink: {
        slotOrigin: async (origin, { reused }) => asked.push(origin, reused),
      },
    });
    pipeline.start();
    await pipeline.caughtUp();
    expect(asked).toEqual([slot.confirmedFlushLsn, true]);
    expect(inserted(applied, 'id')).toEqual([1]);
  });

  it('of a sink with a method for its checkpoint sees that the slot was advanced', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const slotName = `slot_${source.name}`;
    let [commit, end, rejects]: [Lsn | null, Lsn, boolean] = [null, 0n, false];
    const { pipeline, applied } = capture(source, {
      target,
      checkpoint: { kind: 'reader', read: async () => commit },
      async apply({ commitLsn, commitEndLsn }) {
        [commit, end] = [commitLsn, commitEndLsn ?? 0n];
      },
      sink: {
        async slotOrigin(origin, { reused }) {
          if (rejects && reused && origin > end) throw new Error('a gap');
        },
      },
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await waitFor(() => applied.length === 1);
    await pipeline.stop();
    await source.query('insert into t values (2)');
    await source.query(
      'select pg_replication_slot_advance($1, pg_current_wal_flush_lsn())',
      [slotName],
    );
    rejects = true;
    for (let round = 0; round < 2; round++) {
      pipeline.start();
      await haltedFor(pipeline, 'slot_origin/slot_origin_rejected');
    }
    rejects = false;
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (3)');
    await waitFor(() => applied.length === 2);
    expect(inserted(applied, 'id')).toEqual([1, 3]);
  });
});

describe('an origin that is rejected', () => {
  it.each<[string, () => unknown, boolean]>([
    ['rejects', () => Promise.reject(new RangeError('the secret')), true],
    ['returns no promise', () => true, false],
  ])(
    'by a method that %s halts: nothing is stored, and only a new slot is left',
    async (_, refuse, isError) => {
      const { source, target } = await sourceAndTarget(suite);
      const slotName = `slot_${source.name}`;
      let judge = refuse;
      const { pipeline, applied } = capture(source, {
        target,
        sink: { slotOrigin: () => judge() },
      });
      pipeline.start();
      const halt = await haltedFor(
        pipeline,
        'slot_origin/slot_origin_rejected',
      );
      expect(`${halt.detail} ${JSON.stringify(halt)}`).not.toContain('secret');
      expect(halt.sinkError() instanceof RangeError).toBe(isError);
      expect(await readSlot(source, slotName)).not.toBeNull();
      const left = await slotAndCheckpoint(source, target);
      expect(left).toMatchObject({ checkpoints: [] });
      await source.query('insert into t values (1)');
      pipeline.start();
      await haltedFor(pipeline, 'slot_origin/slot_origin_rejected');
      expect(await slotAndCheckpoint(source, target)).toEqual(left);

      judge = async () => {};
      pipeline.start();
      await pipeline.caughtUp();
      expect(inserted(applied, 'id')).toEqual([1]);
    },
  );
});

it('a slot that decodes prepared transactions halts with slot/not_usable', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const slotName = `slot_${source.name}`;
  await source.query(
    `select pg_create_logical_replication_slot($1, 'pgoutput', false, true)`,
    [slotName],
  );
  const { pipeline } = capture(source, { target });
  const before = await slotAndCheckpoint(source, target);
  for (let round = 0; round < 2; round++) {
    pipeline.start();
    const halt = await haltedFor(pipeline, 'slot/not_usable');
    expect(halt.detail).toContain('prepared transactions');
    expect(await slotAndCheckpoint(source, target)).toEqual(before);
  }
  await pipeline.dropSlot();
  pipeline.start();
  await pipeline.whenStreaming();
});
