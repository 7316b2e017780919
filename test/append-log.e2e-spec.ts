import { describe, expect, it } from 'vitest';
import type { Lsn } from '../lib/engine/model/lsn.js';
import { capture, inserted, type Capture } from './support/capture.js';
import { haltedFor, slotAndCheckpoint } from './support/halted.js';
import { confirmedUpTo, readSlot } from './support/logical-slot.js';
import { lifeline } from './support/killed-client.js';
import { present } from './support/present.js';
import {
  sourceAndTarget,
  type SourceAndTarget,
  writeNoise,
} from './support/source-and-target.js';
import { recordStatusUpdates } from './support/status-tap.js';
import { useServer } from './support/suite.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '4s' } });
const other = useServer();

const SCHEMA =
  'create table t(id int primary key); create table heartbeat(at timestamptz); create table noise(id int, pad text); create publication p for table t, heartbeat';

interface Log extends Capture {
  /** Positions that the log was asked about, each with whether the slot was there before. */
  readonly asked: [Lsn, boolean][];
}

/** A pipeline whose sink accepts the position of the slot unless it is past what its checkpoint holds. */
function log({ source, target }: SourceAndTarget): Log {
  const asked: [Lsn, boolean][] = [];
  const capturing = capture(source, {
    target,
    goForwardOnly: false,
    sink: {
      kind: 'appendLog',
      async slotOrigin(origin, { reused }) {
        asked.push([origin, reused]);
        const stored = await capturing.checkpoints.load();
        if (stored === null) return;
        const { commitLsn, confirmedLsn } = stored;
        if (origin > (commitLsn ?? 0n) && origin > (confirmedLsn ?? 0n))
          throw new Error('a gap');
      },
    },
  });
  return { ...capturing, asked };
}

async function confirmedFlush({ source }: SourceAndTarget): Promise<Lsn> {
  const slot = present(await readSlot(source, `slot_${source.name}`));
  return present(slot.confirmedFlushLsn ?? undefined);
}

/** 400 rows that nobody publishes, and the end of the segment; ends when the server knows that they were received. */
async function passBy(databases: SourceAndTarget): Promise<void> {
  const { source } = databases;
  const end = await writeNoise(source, 400);
  await waitFor(
    async () => {
      const [sender] = await source.query<{ reached: boolean }>(
        `select write_lsn >= '0/0'::pg_lsn + $1::numeric as reached
           from pg_stat_replication r join pg_replication_slots s on s.active_pid = r.pid
          where s.slot_name = $2`,
        [String(end), `slot_${source.name}`],
      );
      return sender?.reached;
    },
    { message: 'the server to be told that the noise was received' },
  );
}

describe('a log', () => {
  it('starts without consent to go forward, and is not confirmed past its checkpoint until a heartbeat moves it', async () => {
    const databases = await sourceAndTarget(suite, SCHEMA);
    const { source, target } = databases;
    const { pipeline, applied, asked } = log(databases);
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await waitFor(() => applied.length === 1);
    const end = present(applied[0]?.commitEndLsn ?? undefined);
    await confirmedUpTo(source, `slot_${source.name}`, end);
    const checkpoint = await target.query(
      'select * from replicant_checkpoints',
    );

    for (let round = 0; round < 2; round++) {
      await passBy(databases);
      // Everything is in the log although nothing of it is confirmed.
      await pipeline.caughtUp();
      expect(await confirmedFlush(databases)).toBe(end);
    }
    expect(await target.query('select * from replicant_checkpoints')).toEqual(
      checkpoint,
    );

    await source.query('insert into heartbeat values (now())');
    await waitFor(() => applied.length === 2);
    await confirmedUpTo(
      source,
      `slot_${source.name}`,
      present(applied[1]?.commitEndLsn ?? undefined),
    );
    expect(asked.map(([, reused]) => reused)).toEqual([false]);
  });

  it('goes on after a stop and after a lost connection where it was', async () => {
    const databases = await sourceAndTarget(suite, SCHEMA);
    const { source } = databases;
    const { pipeline, applied, calls, asked } = log(databases);
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await waitFor(() => applied.length === 1);
    await passBy(databases);
    await pipeline.stop();
    const end = present(applied[0]?.commitEndLsn ?? undefined);
    expect(await confirmedFlush(databases)).toBe(end);
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query(
      'select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = $1',
      [`slot_${source.name}`],
    );
    await waitFor(() => asked.length === 3);
    await source.query('insert into t values (2)');
    await waitFor(() => applied.length === 2);
    expect(asked.slice(1)).toEqual([
      [end, true],
      [end, true],
    ]);
    expect(inserted(calls, 'id')).toEqual([1, 2]);
  });

  it('sees that its slot was advanced while it was down, and halts', async () => {
    const databases = await sourceAndTarget(suite, SCHEMA);
    const { source, target } = databases;
    const { pipeline, applied, asked } = log(databases);
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await waitFor(() => applied.length === 1);
    await pipeline.stop();
    await source.query('insert into t values (2)');
    await source.query(
      'select pg_replication_slot_advance($1, pg_current_wal_flush_lsn())',
      [`slot_${source.name}`],
    );
    const before = await slotAndCheckpoint(source, target);
    for (let round = 0; round < 2; round++) {
      pipeline.start();
      await haltedFor(pipeline, 'slot_origin/slot_origin_rejected');
      expect(await slotAndCheckpoint(source, target)).toEqual(before);
    }
    expect(asked.at(-1)).toEqual([await confirmedFlush(databases), true]);

    // Somebody has reconciled the log with the source and lets it go on from where the slot is.
    const mended = capture(source, {
      target,
      sink: { kind: 'appendLog', slotOrigin: async () => {} },
    });
    mended.pipeline.start();
    await mended.pipeline.whenStreaming();
    await mended.pipeline.stop();
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (3)');
    await waitFor(() => applied.length === 2);
    expect(inserted(applied, 'id')).toEqual([1, 3]);
  });

  it('halts when its slot is gone', async () => {
    const databases = await sourceAndTarget(suite, SCHEMA);
    const { source } = databases;
    const { pipeline } = log(databases);
    pipeline.start();
    await pipeline.whenStreaming();
    await pipeline.stop();
    await pipeline.dropSlot();
    pipeline.start();
    await haltedFor(pipeline, 'data_gap/slot_missing_with_checkpoint');
    expect(await readSlot(source, `slot_${source.name}`)).toBeNull();
  });
});

it('a log does not keep the server from a fast shutdown, and is confirmed no further by it', async () => {
  const source = await suite.database();
  await source.query(SCHEMA);
  const target = await other.database('target');
  const databases = { source, target };
  const line = await lifeline(source);
  const updates = recordStatusUpdates(line.proxy);
  const { pipeline, applied } = capture(source, {
    target,
    connection: line.connection,
    sink: { kind: 'appendLog', slotOrigin: async () => {} },
  });
  pipeline.start();
  await pipeline.whenStreaming();
  await source.query('insert into t values (1)');
  await waitFor(() => applied.length === 1);
  const end = present(applied[0]?.commitEndLsn ?? undefined);
  await confirmedUpTo(source, `slot_${source.name}`, end);
  await passBy(databases);
  await suite.server.stop('fast', 10_000);
  await suite.server.startAgain();
  expect(await confirmedFlush(databases)).toBeLessThanOrEqual(end);
  expect(updates.every(({ flushed }) => flushed <= end)).toBe(true);
  await source.query('insert into t values (2)');
  await waitFor(() => applied.length === 2, { timeout: 20_000 });
  expect(inserted(applied, 'id')).toEqual([1, 2]);
});
