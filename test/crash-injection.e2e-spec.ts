import { expect, it } from 'vitest';
import { copy, copyResult, range } from './support/copy.js';
import { lifeline } from './support/killed-client.js';
import {
  confirmedUpTo,
  readSlot,
  terminateBackend,
  walsenderPid,
} from './support/logical-slot.js';
import { sourceAndTarget, writeNoise } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import { deferred, waitFor } from './support/wait-for.js';
import { changesOf } from './support/changes-of.js';

const suite = useServer({ settings: { wal_sender_timeout: '4s' } });

it('three inserts land once each, and the checkpoint is at the last', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const pipeline = await copy(source, { target });
  pipeline.start();
  await pipeline.whenStreaming();
  for (const id of range(1, 3))
    await source.query('insert into t values ($1)', [id]);
  await pipeline.caughtUp();
  expect(await copyResult(target)).toEqual({
    ids: range(1, 3),
    applied: 3,
    appliedTwice: 0,
    skipped: 0,
  });
  expect(
    await target.query(
      'select commit_lsn = (select max(commit_lsn) from ledger) as last from replicant_checkpoints',
    ),
  ).toEqual([{ last: true }]);
});

it('connections killed in mid-stream neither lose nor repeat a row', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const slotName = `slot_${source.name}`;
  const pipeline = await copy(source, { target });
  const seen = { reconnects: 0 };
  pipeline.on('reconnect', () => {
    seen.reconnects += 1;
  });
  pipeline.start();
  await pipeline.whenStreaming();
  const written = new AbortController();
  const kill = async (): Promise<void> => {
    let last = 0;
    while (!written.signal.aborted) {
      const pid = await walsenderPid(source, slotName);
      if (pid !== last) await terminateBackend(source, pid);
      last = pid;
    }
  };
  const write = async (): Promise<void> => {
    let id = 0;
    while (seen.reconnects < 3) {
      for (let count = 0; count < 20; count++) {
        id += 1;
        await source.query('insert into t values ($1)', [id]);
      }
    }
    written.abort();
  };
  await Promise.all([kill(), write()]);
  await pipeline.caughtUp();
  const [row] = await source.query<{ max: number }>('select max(id) from t');
  const ids = range(1, row?.max ?? 0);
  const result = await copyResult(target);
  expect(result.ids).toEqual(ids);
  expect(result).toMatchObject({ applied: ids.length, appliedTwice: 0 });
});

it('a kill inside a transaction applies all of it once, after the restart', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const line = await lifeline(source);
  const inside = deferred();
  let large = false;
  const first = await copy(source, {
    target,
    connection: line.connection,
    drainTimeout: 100,
    async beforeCommit(transaction) {
      if (changesOf(transaction).length < 5_000) return;
      large = true;
      await inside.promise;
      throw new Error('the process is gone');
    },
  });
  first.start();
  await first.whenStreaming();
  await source.query('insert into t values (0)');
  await waitFor(async () => (await copyResult(target)).applied === 1);
  await source.query('insert into t select generate_series(1, 5000)');
  await waitFor(() => large, { timeout: 20_000 });
  await line.kill();
  expect((await copyResult(target)).ids).toEqual([0]);
  expect(
    await target.query(
      'select commit_lsn = (select max(commit_lsn) from ledger) as control from replicant_checkpoints',
    ),
  ).toEqual([{ control: true }]);
  // The server of the target undoes what a dead process had open.
  inside.resolve();
  await first.stop();

  const second = await copy(source, { target });
  second.start();
  await second.caughtUp();
  expect(await copyResult(target)).toEqual({
    ids: range(0, 5_000),
    applied: 2,
    appliedTwice: 0,
    skipped: 0,
  });
}, 60_000);

it('a kill in an idle window lets the rows before and after it land once', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const slotName = `slot_${source.name}`;
  const line = await lifeline(source);
  const first = await copy(source, { target, connection: line.connection });
  first.start();
  await first.whenStreaming();
  await source.query('insert into t values (1)');
  const end = await writeNoise(source);
  await confirmedUpTo(source, slotName, end);
  const idle = (await readSlot(source, slotName))?.confirmedFlushLsn;
  await line.kill();
  expect((await readSlot(source, slotName))?.confirmedFlushLsn).toBe(idle);
  await source.query('insert into t values (2)');

  const second = await copy(source, { target });
  second.start();
  await second.caughtUp();
  expect(await copyResult(target)).toEqual({
    ids: [1, 2],
    applied: 2,
    appliedTwice: 0,
    skipped: 0,
  });
});

it('a first frame far into the WAL is nothing special', async () => {
  const { source, target } = await sourceAndTarget(suite);
  for (let rounds = 0; rounds < 5; rounds++) await writeNoise(source, 10);
  const pipeline = await copy(source, { target, maxInflightBytes: 64 * 1024 });
  pipeline.start();
  await pipeline.whenStreaming();
  await source.query('insert into t values (1)');
  await pipeline.caughtUp();
  expect((await copyResult(target)).ids).toEqual([1]);
});
