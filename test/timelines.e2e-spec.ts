import { describe, expect, it } from 'vitest';
import { capture, inserted, type Capture } from './support/capture.js';
import { haltedFor, slotAndCheckpoint } from './support/halted.js';
import { flushedLsn, writeNoise } from './support/source-and-target.js';
import { PrimaryAndStandby } from './support/standby.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer();

interface Stage {
  readonly servers: PrimaryAndStandby;
  readonly target: TestDatabase;
  readonly capturing: Capture;
  /** Lets the next connection lead to the standby. */
  readonly turn: () => void;
}

/** A pipeline that has applied row 1 of the primary, and a standby that has it too. */
async function stage(): Promise<Stage> {
  const servers = await PrimaryAndStandby.start({ consumersMayLead: true });
  const target = await suite.database('target');
  const { source, copy } = servers;
  let current = source;
  const capturing = capture(source, {
    target,
    connection: () => ({ ...current.connection }),
  });
  capturing.pipeline.start();
  await capturing.pipeline.whenStreaming();
  await source.query('insert into t values (1)');
  await capturing.pipeline.caughtUp();
  await servers.caughtUp();
  return { servers, target, capturing, turn: () => (current = copy) };
}

/** As an operator does who has no synchronized slot: creates one where the server is. */
function createSlot(database: TestDatabase): Promise<unknown> {
  return database.query(
    `select pg_create_logical_replication_slot($1, 'pgoutput')`,
    [`slot_${database.name}`],
  );
}

describe('a standby that is promoted', () => {
  it('behind the consumer halts with data_gap/timeline_diverged, also when it was written to since', async () => {
    const { servers, target, capturing, turn } = await stage();
    const { source, copy } = servers;
    const { pipeline, applied } = capturing;
    await servers.cutOff();
    await source.query('insert into t values (2)');
    await waitFor(() => applied.length === 2);
    await pipeline.caughtUp();
    const seen = await flushedLsn(source);
    await pipeline.stop();
    await servers.primary.kill();
    await servers.promote();
    turn();
    await copy.query('insert into t values (20)');
    await createSlot(copy);
    const before = await slotAndCheckpoint(copy, target);
    pipeline.start();
    const halt = await haltedFor(pipeline, 'data_gap/timeline_diverged');
    expect(halt.detail).toMatch(/timeline 1, which the server left at/);
    expect(await slotAndCheckpoint(copy, target)).toEqual(before);

    // Now the checkpoint is a position that the server has, with other transactions before it.
    await waitFor(async () => (await writeNoise(copy)) > seen);
    pipeline.start();
    await haltedFor(pipeline, 'data_gap/timeline_diverged');
    expect(await slotAndCheckpoint(copy, target)).toEqual(before);
    expect(inserted(applied, 'id')).toEqual([1, 2]);

    await target.query('delete from replicant_checkpoints');
    pipeline.start();
    await pipeline.whenStreaming();
    await copy.query('insert into t values (30)');
    await waitFor(() => inserted(applied, 'id').includes(30));
  }, 60_000);

  it('after it has received everything goes on as the same history, and its predecessor does not', async () => {
    const { servers, target, capturing, turn } = await stage();
    const { source, copy } = servers;
    const { pipeline, applied } = capturing;
    await pipeline.stop();
    // What the pipeline confirmed last is in the standby too.
    await servers.caughtUp();
    await servers.primary.kill();
    await servers.promote();
    turn();
    // The timeline is fine, so what is found is that the slot is not there.
    pipeline.start();
    await haltedFor(pipeline, 'data_gap/slot_missing_with_checkpoint');
    await createSlot(copy);
    pipeline.start();
    await haltedFor(pipeline, 'data_gap/slot_moved');

    // An operator who knows that nothing was written in between takes the new slot over.
    await target.query(
      'update replicant_checkpoints set confirmed_lsn = $1::text::pg_lsn, timeline = 2',
      [await flushedText(copy)],
    );
    pipeline.start();
    await pipeline.whenStreaming();
    await copy.query('insert into t values (2)');
    await waitFor(() => applied.length === 2);
    await pipeline.stop();
    const [row] = await target.query(
      'select timeline from replicant_checkpoints',
    );
    expect(row).toEqual({ timeline: 2 });

    await servers.primary.startAgain();
    const late = capture(source, { target });
    const before = await slotAndCheckpoint(source, target);
    late.pipeline.start();
    const halt = await haltedFor(late.pipeline, 'data_gap/timeline_diverged');
    expect(halt.detail).toContain('does not descend from');
    expect(await slotAndCheckpoint(source, target)).toEqual(before);
  }, 60_000);
});

async function flushedText(database: TestDatabase): Promise<string | null> {
  const [row] = await database.query<{ lsn: string }>(
    `select confirmed_flush_lsn::text as lsn from pg_replication_slots where slot_name = $1`,
    [`slot_${database.name}`],
  );
  return row?.lsn ?? null;
}
