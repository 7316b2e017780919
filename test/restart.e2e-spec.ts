import { describe, expect, it } from 'vitest';
import { capture, inserted } from './support/capture.js';
import { copy, copyResult, range } from './support/copy.js';
import { lifeline } from './support/killed-client.js';
import { confirmedUpTo, readSlot } from './support/logical-slot.js';
import { present } from './support/present.js';
import { sourceAndTarget, writeNoise } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';
import { changesOf } from './support/changes-of.js';

const suite = useServer({ settings: { wal_sender_timeout: '4s' } });

async function confirmed(source: TestDatabase): Promise<bigint> {
  const slot = await readSlot(source, `slot_${source.name}`);
  return slot?.confirmedFlushLsn ?? 0n;
}

describe('a clean stop', () => {
  it('leaves nothing to deliver again (A07)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const first = capture(source, { target });
    first.pipeline.start();
    await first.pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await waitFor(() => first.applied.length === 1);
    await first.pipeline.stop();
    for (const round of range(1, 3)) {
      const again = capture(source, { target });
      again.pipeline.start();
      await again.pipeline.caughtUp();
      await again.pipeline.stop();
      expect(again.calls, `start ${round}`).toEqual([]);
    }
  });

  it('tells the server what is durable, however short the run was (A15)', async () => {
    const { source, target } = await sourceAndTarget(
      suite,
      'create table t(id serial primary key); create publication p for table t',
    );
    const all: unknown[] = [];
    let before = 0n;
    for (const round of range(1, 5)) {
      const { pipeline, applied } = capture(source, { target });
      pipeline.start();
      await pipeline.whenStreaming();
      await source.query(
        'insert into t select from generate_series(1, 1000); select pg_switch_wal()',
      );
      await waitFor(() => applied.length === 1);
      await pipeline.stop();
      const slot = await confirmed(source);
      expect(slot).toBeGreaterThanOrEqual(present(applied[0]?.commitEndLsn));
      expect(slot, `run ${round}`).toBeGreaterThan(before);
      before = slot;
      all.push(...inserted(applied, 'id'));
    }
    expect(all).toEqual(range(1, 5_000));
  });
});

describe('positions', () => {
  it('that meet do not make neighbours one transaction (A11)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline, applied, calls } = capture(source, { target });
    pipeline.start();
    await pipeline.whenStreaming();
    for (const id of range(1, 20)) {
      await source.query('insert into t values ($1)', [id]);
      // Between some of them, so that an end position is where the stream begins.
      if (id % 7 === 0) {
        await waitFor(() => applied.length === id);
        await pipeline.stop();
        pipeline.start();
        await pipeline.whenStreaming();
      }
    }
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual(range(1, 20));
    expect(calls).toEqual(applied);
    const overlapping = applied.slice(1).filter(({ commitLsn }, index) => {
      const end = present(applied[index]?.commitEndLsn);
      return commitLsn < end;
    });
    expect(overlapping).toEqual([]);
  });

  it('from inside a transaction do not stand for its commit (A14)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline, applied } = capture(source, { target });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query(
      `begin;
       insert into t values (1);
       select pg_logical_emit_message(true, 'wm', 'x');
       insert into t select generate_series(2, 2000);
       commit`,
    );
    await pipeline.caughtUp();
    expect(applied.map((each) => changesOf(each).length)).toEqual([2_000]);
    expect(applied[0]?.messages).toEqual([]);
  });

  it('where the stream begins are the stored ones, not zero and not the end of the WAL (A21)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline, applied } = capture(source, { target });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await waitFor(() => applied.length === 1);
    await pipeline.stop();
    const [row] = await target.query<{ lsn: string }>(
      'select confirmed_lsn::text as lsn from replicant_checkpoints',
    );
    await source.query('insert into t values (2)');
    const said = suite.server.log().length;
    pipeline.start();
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1, 2]);
    expect(suite.server.log().slice(said)).toContain(
      `START_REPLICATION SLOT slot_${source.name} LOGICAL ${row?.lsn} `,
    );
  });
});

describe('a checkpoint ahead of the slot', () => {
  it('after a kill between the commit of the sink and the confirmation neither halts nor applies again', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const line = await lifeline(source);
    const first = await copy(source, { target, connection: line.connection });
    first.start();
    await first.whenStreaming();
    await source.query('insert into t values (1)');
    await first.caughtUp();
    line.proxy.halfOpen('client-to-server');
    await source.query('insert into t values (2)');
    await waitFor(async () => (await copyResult(target)).applied === 2);
    await line.kill();
    const [row] = await target.query<{ ahead: boolean }>(
      `select confirmed_lsn > $1::text::pg_lsn as ahead from replicant_checkpoints`,
      [await slotText(source)],
    );
    expect(row?.ahead).toBe(true);

    const second = await copy(source, { target });
    second.start();
    await source.query('insert into t values (3)');
    await second.caughtUp();
    expect(await copyResult(target)).toEqual({
      ids: [1, 2, 3],
      applied: 3,
      appliedTwice: 0,
      skipped: 0,
    });
  });

  it('that the pipeline was not told of is fenced by advance in the sink', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const line = await lifeline(source);
    const lies = {
      kind: 'reader',
      read: () => Promise.resolve(null),
    } as const;
    const first = await copy(source, {
      target,
      connection: line.connection,
      checkpoint: lies,
    });
    first.start();
    await first.whenStreaming();
    await source.query('insert into t values (1)');
    await waitFor(async () => (await copyResult(target)).applied === 1);
    line.proxy.halfOpen('client-to-server');
    await source.query('insert into t values (2)');
    await waitFor(async () => (await copyResult(target)).applied === 2);
    await line.kill();

    const second = await copy(source, { target, checkpoint: lies });
    second.start();
    await source.query('insert into t values (3)');
    await second.caughtUp();
    const result = await copyResult(target);
    expect(result).toMatchObject({
      ids: [1, 2, 3],
      applied: 3,
      appliedTwice: 0,
    });
    expect(result.skipped).toBeGreaterThanOrEqual(1);
  });

  it('after an immediate stop of the server, which sets the slot back, neither halts nor applies again', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const slotName = `slot_${source.name}`;
    const pipeline = await copy(source, { target });
    pipeline.start();
    await pipeline.whenStreaming();
    await suite.server.query('checkpoint');
    let setBack = 0;
    for (const id of range(1, 3)) {
      await source.query('insert into t values ($1)', [id]);
      const end = await writeNoise(source, 100);
      await confirmedUpTo(source, slotName, end);
      const before = await confirmed(source);
      await suite.server.restart('immediate');
      if (id < 3) {
        await waitFor(() => pipeline.state === 'reconnecting');
        setBack += Number((await confirmed(source)) < before);
      } else {
        await pipeline.stop();
        setBack += Number((await confirmed(source)) < before);
        pipeline.start();
      }
      await pipeline.whenStreaming();
    }
    await source.query('insert into t values (4)');
    await pipeline.caughtUp();
    expect(setBack).toBeGreaterThan(0);
    expect(pipeline.halt).toBeNull();
    expect(await copyResult(target)).toEqual({
      ids: [1, 2, 3, 4],
      applied: 4,
      appliedTwice: 0,
      skipped: 0,
    });
  });

  it.each(['fast', 'immediate'] as const)(
    'by a long idle time survives a %s restart of the server',
    async (mode) => {
      const { source, target } = await sourceAndTarget(suite);
      const slotName = `slot_${source.name}`;
      const { pipeline, applied, calls } = capture(source, { target });
      pipeline.start();
      await pipeline.whenStreaming();
      for (let rounds = 0; rounds < 3; rounds++)
        await confirmedUpTo(source, slotName, await writeNoise(source));
      await pipeline.stop();
      await suite.server.restart(mode);
      await source.query('insert into t values (1)');
      pipeline.start();
      await pipeline.caughtUp();
      expect(inserted(applied, 'id')).toEqual([1]);
      expect(calls).toEqual(applied);
    },
  );
});

async function slotText(source: TestDatabase): Promise<string> {
  const [row] = await source.query<{ lsn: string }>(
    'select confirmed_flush_lsn::text as lsn from pg_replication_slots where slot_name = $1',
    [`slot_${source.name}`],
  );
  return row?.lsn ?? '';
}
