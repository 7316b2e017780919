import { describe, expect, it, onTestFinished } from 'vitest';
import type { SinkCheckpoint } from '../lib/engine/model/checkpoint.js';
import { Pipeline } from '../lib/engine/pipeline.js';
import { CheckpointTable } from '../lib/engine/checkpoint/checkpoint-table.js';
import { capture, inserted } from './support/capture.js';
import {
  confirmedUpTo,
  readSlot,
  walsenderPid,
} from './support/logical-slot.js';
import {
  flushedLsn,
  sourceAndTarget,
  writeNoise,
} from './support/source-and-target.js';
import { present } from './support/present.js';
import { useServer } from './support/suite.js';
import { deferred, waitFor } from './support/wait-for.js';
import { changesOf } from './support/changes-of.js';

const suite = useServer({
  settings: {
    wal_sender_timeout: '4s',
    archive_mode: 'on',
    archive_command: process.platform === 'win32' ? 'cd .' : '/bin/true',
    archive_timeout: '1s',
  },
});

describe('WAL that concerns no publication is released', () => {
  it('when it comes from other tables, and later rows arrive once (A05)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline, applied, calls } = capture(source, { target });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    const end = await writeNoise(source, 20_000);
    await confirmedUpTo(source, `slot_${source.name}`, end);
    await source.query('insert into t values (2)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1, 2]);
    expect(calls).toEqual(applied);
  });

  it('across a reconnect', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const slotName = `slot_${source.name}`;
    const { pipeline, applied, calls } = capture(source, { target });
    pipeline.start();
    await pipeline.whenStreaming();
    for (const id of [1, 2]) {
      const pid = await walsenderPid(source, slotName);
      await source.query('select pg_terminate_backend($1)', [pid]);
      await confirmedUpTo(source, slotName, await writeNoise(source));
      expect(await walsenderPid(source, slotName)).not.toBe(pid);
      await source.query('insert into t values ($1)', [id]);
      await pipeline.caughtUp();
    }
    expect(inserted(applied, 'id')).toEqual([1, 2]);
    expect(calls).toEqual(applied);
  });

  it('when it comes from a neighbour database (B01)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const neighbour = await suite.database('neighbour');
    const { pipeline, calls } = capture(source, { target });
    pipeline.start();
    await pipeline.whenStreaming();
    for (let round = 0; round < 3; round++)
      await confirmedUpTo(
        source,
        `slot_${source.name}`,
        await writeNoise(neighbour, 5_000),
      );
    expect(calls).toEqual([]);
  });

  it('when the server ends segments by itself, without a table or message of ours (B02)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline, calls } = capture(source, { target });
    pipeline.start();
    await pipeline.whenStreaming();
    const segment = async (): Promise<bigint> =>
      (await flushedLsn(source)) >> 24n;
    for (let round = 0; round < 2; round++) {
      const before = await segment();
      // As a managed server's own bookkeeping does; archive_timeout then ends the segment.
      await suite.server.query('select pg_create_restore_point($1)', ['x']);
      await waitFor(async () => (await segment()) > before, {
        message: 'the server to end the segment',
      });
      await confirmedUpTo(
        source,
        `slot_${source.name}`,
        await flushedLsn(source),
      );
    }
    expect(calls).toEqual([]);
    const tables = await source.query(
      `select from pg_class where relnamespace = 'public'::regnamespace and relname <> 't' and relkind = 'r'`,
    );
    expect(tables).toEqual([]);
  });

  it('when the sink takes its transactions and does nothing with them (B07)', async () => {
    const { source, target } = await sourceAndTarget(
      suite,
      'create table t(id int primary key); create table u(id int primary key); create publication p for all tables',
    );
    const checkpoints = new CheckpointTable((sql, values) =>
      target.query(sql, values),
    );
    const pipeline = new Pipeline('test', {
      connection: { ...source.connection },
      slotName: `slot_${source.name}`,
      publication: 'p',
      goForwardOnly: true,
    });
    onTestFinished(() => pipeline.stop());
    let ignored = 0;
    pipeline.attach({
      name: 'OnlyT',
      checkpoint: { kind: 'keeper', keeper: checkpoints },
      async transaction(transaction) {
        if (changesOf(transaction).every(({ table }) => table !== 't'))
          ignored += 1;
      },
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query(
      'insert into u select generate_series(1, 20000); select pg_switch_wal()',
    );
    await confirmedUpTo(
      source,
      `slot_${source.name}`,
      await flushedLsn(source),
    );
    expect(ignored).toBe(1);
  });
});

it.each<[string, SinkCheckpoint | undefined]>([
  ['a checkpoint table', undefined],
  // Nothing is stored before it is confirmed: the positions alone hold the slot back.
  ['a checkpoint method', { kind: 'reader', read: async () => null }],
])(
  'is not released while a transaction before it waits for the sink, with %s',
  async (_, checkpoint) => {
    const { source, target } = await sourceAndTarget(suite);
    const slotName = `slot_${source.name}`;
    const gate = deferred();
    const { pipeline, calls } = capture(source, {
      target,
      apply: () => gate.promise,
      ...(checkpoint === undefined ? {} : { checkpoint }),
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await waitFor(() => calls.length === 1);
    const end = await writeNoise(source);
    const { commitLsn } = present(calls[0]);
    await waitFor(
      async () => {
        const [sender] = await source.query<{ reached: boolean }>(
          `select write_lsn >= $1::text::pg_lsn as reached from pg_stat_replication r
           join pg_replication_slots s on s.active_pid = r.pid where s.slot_name = $2`,
          [
            `${(end >> 32n).toString(16)}/${(end & 0xffff_ffffn).toString(16)}`,
            slotName,
          ],
        );
        return sender?.reached;
      },
      { message: 'the server to be told that the noise was received' },
    );
    const slot = await readSlot(source, slotName);
    expect(slot?.confirmedFlushLsn).toBeLessThanOrEqual(commitLsn);
    gate.resolve();
    await confirmedUpTo(source, slotName, end);
  },
);

it('an abandoned slot goes with dropSlot, which is refused while the pipeline runs (B06)', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const old = capture(source, { target, slotName: `old_${source.name}` });
  old.pipeline.start();
  await old.pipeline.whenStreaming();
  await expect(old.pipeline.dropSlot()).rejects.toThrow(/stop it/);
  expect(await readSlot(source, `old_${source.name}`)).not.toBeNull();
  await old.pipeline.stop();
  const renamed = capture(source, { target, slotName: `new_${source.name}` });
  renamed.pipeline.start();
  await renamed.pipeline.whenStreaming();
  expect(await readSlot(source, `old_${source.name}`)).not.toBeNull();
  await old.pipeline.dropSlot();
  expect(await readSlot(source, `old_${source.name}`)).toBeNull();
  expect(await readSlot(source, `new_${source.name}`)).not.toBeNull();
});
