import { describe, expect, it } from 'vitest';
import { deferred } from '../lib/engine/model/deferred.js';
import type { HaltCode } from '../lib/engine/model/halts.js';
import { capture, inserted, type Capture } from './support/capture.js';
import { haltedFor, slotAndCheckpoint } from './support/halted.js';
import { confirmedUpTo, readSlot } from './support/logical-slot.js';
import {
  sourceAndTarget,
  type SourceAndTarget,
  writeNoise,
} from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer({
  settings: {
    wal_sender_timeout: '4s',
    max_slot_wal_keep_size: '48MB',
    min_wal_size: '32MB',
    max_wal_size: '32MB',
  },
});

/** Halts at the start, leaves everything as it is, and streams once the cause is mended. */
async function haltsUntilMended(
  { source, target }: SourceAndTarget,
  { pipeline, applied, calls }: Capture,
  code: HaltCode,
  mend: () => Promise<unknown>,
): Promise<void> {
  const before = await slotAndCheckpoint(source, target);
  const delivered = calls.length;
  for (let round = 0; round < 2; round++) {
    pipeline.start();
    await haltedFor(pipeline, code);
    expect(await slotAndCheckpoint(source, target)).toEqual(before);
    expect(calls.length).toBe(delivered);
  }
  await mend();
  pipeline.start();
  await pipeline.whenStreaming();
  await source.query('insert into t values (1000)');
  await pipeline.caughtUp();
  expect(inserted(applied, 'id').at(-1)).toBe(1_000);
}

/** A pipeline that has applied row 1 and was stopped. */
async function stoppedAfterRow1(databases: SourceAndTarget): Promise<Capture> {
  const { source, target } = databases;
  const capturing = capture(source, { target });
  capturing.pipeline.start();
  await capturing.pipeline.whenStreaming();
  await source.query('insert into t values (1)');
  await waitFor(() => capturing.applied.length === 1);
  await capturing.pipeline.stop();
  return capturing;
}

/** Writes WAL until the slot of the source has lost some that it needs. */
async function writeUntilLost(source: TestDatabase): Promise<void> {
  for (let rounds = 0; ; rounds++) {
    const slot = await readSlot(source, `slot_${source.name}`);
    if (slot?.walStatus === 'lost') break;
    expect(rounds).toBeLessThan(20);
    await writeNoise(source, 20_000);
    await source.query('checkpoint');
  }
}

async function setIdleTimeout(
  source: TestDatabase,
  value: string,
): Promise<void> {
  await source.query(
    `alter system set idle_replication_slot_timeout = '${value}'`,
  );
  await source.query('select pg_reload_conf()');
}

describe('slot/not_usable', () => {
  it.each([
    ['physical (A16)', 'select pg_create_physical_replication_slot($1)'],
    [
      'of another plugin',
      `select pg_create_logical_replication_slot($1, 'test_decoding')`,
    ],
  ])('halts on a slot that is %s', async (_, create) => {
    const databases = await sourceAndTarget(suite);
    const { source, target } = databases;
    const slotName = `slot_${source.name}`;
    await source.query(create, [slotName]);
    await haltsUntilMended(
      databases,
      capture(source, { target }),
      'slot/not_usable',
      () => source.query('select pg_drop_replication_slot($1)', [slotName]),
    );
  });

  it('halts on a slot of another database', async () => {
    const databases = await sourceAndTarget(suite);
    const { source, target } = databases;
    const slotName = `slot_${source.name}`;
    await target.query(
      `select pg_create_logical_replication_slot($1, 'pgoutput')`,
      [slotName],
    );
    await haltsUntilMended(
      databases,
      capture(source, { target }),
      'slot/not_usable',
      () => source.query('select pg_drop_replication_slot($1)', [slotName]),
    );
  });
});

it('waits for a slot that another session is still creating (A16)', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const slotName = `slot_${source.name}`;
  const open = await source.connect();
  await open.query('begin; insert into t values (-1)');
  const creator = await source.connect();
  const created = creator.query(
    `select pg_create_logical_replication_slot($1, 'pgoutput')`,
    [slotName],
  );
  const slot = await waitFor(() => readSlot(source, slotName));
  expect(slot.confirmedFlushLsn).toBeNull();
  const { pipeline, applied } = capture(source, { target });
  pipeline.start();
  await waitFor(() => pipeline.status().attempt > 0);
  expect(pipeline.halt).toBeNull();
  await open.query('commit');
  await created;
  await source.query('insert into t values (1)');
  await pipeline.caughtUp();
  expect(inserted(applied, 'id')).toEqual([1]);
});

describe('slot_invalidated/wal_lost', () => {
  it('halts when the server has removed WAL that the slot needs', async () => {
    const databases = await sourceAndTarget(suite);
    const { source, target } = databases;
    const capturing = await stoppedAfterRow1(databases);
    await writeUntilLost(source);
    await haltsUntilMended(
      databases,
      capturing,
      'slot_invalidated/wal_lost',
      async () => {
        await capturing.pipeline.dropSlot();
        await target.query('delete from replicant_checkpoints');
      },
    );
  }, 60_000);

  it('halts when that happens to a live pipeline whose sink is stuck, once the sink has let go', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const stuck = deferred<void>();
    const { pipeline, applied } = capture(source, {
      target,
      apply: () => stuck.promise,
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await waitFor(() => pipeline.status().inflightBytes > 0);
    await writeUntilLost(source);
    stuck.resolve();
    await haltedFor(pipeline, 'slot_invalidated/wal_lost');
    expect(inserted(applied, 'id')).toEqual([1]);
  }, 60_000);
});

describe('slot_invalidated/invalidated', () => {
  it('halts when the server gave up a slot that was idle for too long, which PostgreSQL 18 does', async () => {
    const databases = await sourceAndTarget(suite);
    const { source, target } = databases;
    if (suite.server.majorVersion < 18) {
      await expect(setIdleTimeout(source, '1s')).rejects.toThrow(
        'unrecognized configuration parameter',
      );
      return;
    }
    const capturing = await stoppedAfterRow1(databases);
    await setIdleTimeout(source, '1s');
    await waitFor(
      async () => {
        await source.query('checkpoint');
        const [slot] = await source.query<{ reason: string }>(
          'select invalidation_reason as reason from pg_replication_slots where slot_name = $1',
          [`slot_${source.name}`],
        );
        return slot?.reason === 'idle_timeout';
      },
      { timeout: 20_000, message: 'the slot to be invalidated' },
    );
    await setIdleTimeout(source, '0');
    await haltsUntilMended(
      databases,
      capturing,
      'slot_invalidated/invalidated',
      async () => {
        await capturing.pipeline.dropSlot();
        await target.query('delete from replicant_checkpoints');
      },
    );
  });
});

describe('data_gap/slot_missing_with_checkpoint', () => {
  it('halts when the slot is gone', async () => {
    const databases = await sourceAndTarget(suite);
    const { source, target } = databases;
    const capturing = await stoppedAfterRow1(databases);
    await capturing.pipeline.dropSlot();
    await source.query('insert into t values (2)');
    await haltsUntilMended(
      databases,
      capturing,
      'data_gap/slot_missing_with_checkpoint',
      () => target.query('delete from replicant_checkpoints'),
    );
    expect(inserted(capturing.applied, 'id')).toEqual([1, 1_000]);
  });

  it('halts when only an idle position was ever stored', async () => {
    const databases = await sourceAndTarget(suite);
    const { source, target } = databases;
    const capturing = capture(source, { target });
    const { pipeline } = capturing;
    pipeline.start();
    await pipeline.whenStreaming();
    await confirmedUpTo(
      source,
      `slot_${source.name}`,
      await writeNoise(source),
    );
    await pipeline.stop();
    expect(
      await target.query('select commit_lsn from replicant_checkpoints'),
    ).toEqual([{ commit_lsn: null }]);
    await pipeline.dropSlot();
    await source.query('insert into t values (2)');
    await haltsUntilMended(
      databases,
      capturing,
      'data_gap/slot_missing_with_checkpoint',
      () => target.query('delete from replicant_checkpoints'),
    );
  });

  it('halts when the slot is dropped under a live pipeline', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const slotName = `slot_${source.name}`;
    const { pipeline } = capture(source, { target });
    pipeline.start();
    await pipeline.whenStreaming();
    await waitFor(async () => {
      await source.query(
        'select pg_terminate_backend(active_pid, 5000) from pg_replication_slots where slot_name = $1 and active',
        [slotName],
      );
      await source
        .query('select pg_drop_replication_slot($1)', [slotName])
        .catch(() => {});
      return (await readSlot(source, slotName)) === null;
    });
    await haltedFor(pipeline, 'data_gap/slot_missing_with_checkpoint');
    expect(await readSlot(source, slotName)).toBeNull();
  });
});

describe('data_gap/slot_moved', () => {
  it('halts when the slot was dropped and created again by hand (A09)', async () => {
    const databases = await sourceAndTarget(suite);
    const { source, target } = databases;
    const capturing = await stoppedAfterRow1(databases);
    const slotName = `slot_${source.name}`;
    await source.query('select pg_drop_replication_slot($1)', [slotName]);
    await source.query('insert into t values (2)');
    await source.query(
      `select pg_create_logical_replication_slot($1, 'pgoutput')`,
      [slotName],
    );
    await source.query('insert into t values (3)');
    await haltsUntilMended(databases, capturing, 'data_gap/slot_moved', () =>
      target.query('delete from replicant_checkpoints'),
    );
    expect(inserted(capturing.applied, 'id')).toEqual([1, 3, 1_000]);
  });

  it('halts when the slot was advanced', async () => {
    const databases = await sourceAndTarget(suite);
    const { source, target } = databases;
    const capturing = await stoppedAfterRow1(databases);
    await source.query('insert into t values (2)');
    await source.query(
      'select pg_replication_slot_advance($1, pg_current_wal_flush_lsn())',
      [`slot_${source.name}`],
    );
    await haltsUntilMended(databases, capturing, 'data_gap/slot_moved', () =>
      target.query('delete from replicant_checkpoints'),
    );
  });

  it('halts when an idle slot was created again, before any transaction', async () => {
    const databases = await sourceAndTarget(suite);
    const { source, target } = databases;
    const capturing = capture(source, { target });
    const { pipeline } = capturing;
    pipeline.start();
    await pipeline.whenStreaming();
    await pipeline.stop();
    await pipeline.dropSlot();
    await source.query('insert into t values (2)');
    await source.query(
      `select pg_create_logical_replication_slot($1, 'pgoutput')`,
      [`slot_${source.name}`],
    );
    await haltsUntilMended(databases, capturing, 'data_gap/slot_moved', () =>
      target.query('delete from replicant_checkpoints'),
    );
  });
});
