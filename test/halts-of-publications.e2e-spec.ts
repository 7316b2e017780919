import { describe, expect, it } from 'vitest';
import { capture, inserted } from './support/capture.js';
import { haltedFor, slotAndCheckpoint } from './support/halted.js';
import { readSlot } from './support/logical-slot.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '4s' } });

describe('publication/missing', () => {
  it('halts when one of two does not exist, delivers nothing, and goes on when it does', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline, applied, calls } = capture(source, {
      target,
      publication: ['p', 'Second'],
    });
    pipeline.start();
    const halt = await haltedFor(pipeline, 'publication/missing');
    expect(halt.detail).toContain('"Second"');
    expect(await readSlot(source, `slot_${source.name}`)).toBeNull();
    await source.query(
      'create table u(id int primary key); create publication "Second" for table u, t',
    );
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await source.query('insert into u values (2)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1, 2]);

    await pipeline.stop();
    await source.query('insert into t values (3)');
    await source.query('drop publication "Second"');
    const before = await slotAndCheckpoint(source, target);
    const delivered = calls.length;
    pipeline.start();
    await haltedFor(pipeline, 'publication/missing');
    expect(await slotAndCheckpoint(source, target)).toEqual(before);
    expect(calls.length).toBe(delivered);
  });

  it('halts when it is dropped while rows are streamed, and no row vanishes', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const slotName = `slot_${source.name}`;
    const { pipeline, applied } = capture(source, { target });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await waitFor(() => applied.length === 1);
    await source.query('drop publication p');
    await source.query('insert into t values (2)');
    await source.query('insert into t values (3)');
    await haltedFor(pipeline, 'publication/missing');
    expect(inserted(applied, 'id')).toEqual([1]);
    // The rows stay in reach of the slot: its position is before them.
    const [state] = await source.query<{ before: boolean }>(
      `select confirmed_flush_lsn <= $2::text::pg_lsn as before from pg_replication_slots where slot_name = $1`,
      [slotName, await storedText(target)],
    );
    expect(state?.before).toBe(true);

    // Those rows were written without a publication. Starting anew halts again rather than pass over them.
    await source.query('create publication p for table t');
    await source.query('insert into t values (4)');
    const before = await slotAndCheckpoint(source, target);
    pipeline.start();
    await haltedFor(pipeline, 'publication/missing');
    expect(await slotAndCheckpoint(source, target)).toEqual(before);
    expect(inserted(applied, 'id')).toEqual([1]);

    await pipeline.dropSlot();
    await target.query('delete from replicant_checkpoints');
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (5)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1, 5]);
  });

  it('halts under either name when it is renamed while rows wait to be read (S02)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline, applied } = capture(source, { target });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await waitFor(() => applied.length === 1);
    await pipeline.stop();
    await source.query('insert into t values (2)');
    await source.query('alter publication p rename to q');
    const before = await slotAndCheckpoint(source, target);
    const renamed = capture(source, { target, publication: 'q' });
    for (const each of [pipeline, renamed.pipeline]) {
      each.start();
      await haltedFor(each, 'publication/missing');
      expect(await slotAndCheckpoint(source, target)).toEqual(before);
    }
    expect(renamed.calls).toEqual([]);

    // Under the name that it had when they were written, they come.
    await source.query('alter publication q rename to p');
    pipeline.start();
    await waitFor(() => applied.length === 2);
    expect(inserted(applied, 'id')).toEqual([1, 2]);
  });

  it('does not halt when it is dropped and created again before any row', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline, applied } = capture(source, { target });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await source.query(
      'begin; drop publication p; create publication p for table t; commit',
    );
    await source.query('insert into t values (2)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1, 2]);
  });
});

describe('preflight/self_feeding', () => {
  it.each([
    ['for all tables', 'create publication p for all tables'],
    ['for the schema', 'create publication p for tables in schema public'],
    [
      'for the table by name',
      'create publication p for table t, replicant_checkpoints',
    ],
  ])(
    'halts when the checkpoint table is in the publication %s',
    async (_, publish) => {
      const { source } = await sourceAndTarget(
        suite,
        'create table t(id int primary key)',
      );
      // Only a pipeline creates the table; this one does so on its way to a halt.
      const first = capture(source, {
        target: source,
        publication: 'q',
        goForwardOnly: false,
      });
      await source.query('create publication q for table t');
      first.pipeline.start();
      await haltedFor(first.pipeline, 'config/go_forward_required');
      await source.query(publish);

      const { pipeline, applied } = capture(source, { target: source });
      const before = await slotAndCheckpoint(source, source);
      for (let round = 0; round < 2; round++) {
        pipeline.start();
        const halt = await haltedFor(pipeline, 'preflight/self_feeding');
        expect(halt.detail).toContain('replicant_checkpoints');
        expect(await slotAndCheckpoint(source, source)).toEqual(before);
      }
      await source.query(
        'drop publication p; create publication p for table t',
      );
      pipeline.start();
      await pipeline.whenStreaming();
      await source.query('insert into t values (1)');
      await pipeline.caughtUp();
      expect(inserted(applied, 'id')).toEqual([1]);
    },
  );

  it('runs the SQL that the halt names', async () => {
    const { source } = await sourceAndTarget(
      suite,
      'create table t(id int primary key); create publication p for table t',
    );
    const { pipeline, applied } = capture(source, { target: source });
    pipeline.start();
    await pipeline.whenStreaming();
    await pipeline.stop();
    await source.query('alter publication p add table replicant_checkpoints');
    pipeline.start();
    const { detail } = await haltedFor(pipeline, 'preflight/self_feeding');
    await source.query(/run: (.*)$/.exec(detail)?.[1] ?? '');
    pipeline.start();
    await source.query('insert into t values (1)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1]);
  });

  it('is no matter when the checkpoint is in another database, even under the same name', async () => {
    const { source, target } = await sourceAndTarget(
      suite,
      'create table t(id int primary key); create table replicant_checkpoints(id int primary key); create publication p for all tables',
    );
    const { pipeline, applied } = capture(source, { target });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await source.query('insert into replicant_checkpoints values (2)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1, 2]);
  });
});

async function storedText(
  target: Awaited<ReturnType<typeof sourceAndTarget>>['target'],
): Promise<string> {
  const [row] = await target.query<{ lsn: string }>(
    'select confirmed_lsn::text as lsn from replicant_checkpoints',
  );
  return row?.lsn ?? '';
}
