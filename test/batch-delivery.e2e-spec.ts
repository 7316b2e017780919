import { expect, it } from 'vitest';
import { parseLsn, type Lsn } from '../lib/engine/model/lsn.js';
import { range } from './support/copy.js';
import { haltedFor, slotAndCheckpoint } from './support/halted.js';
import {
  currentLsn,
  readSlot,
  terminateBackend,
  walsenderPid,
} from './support/logical-slot.js';
import {
  batchesOf,
  insertEach,
  recorded,
  recording,
} from './support/recording.js';
import { present } from './support/present.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import { deferred, waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '4s' } });

/** A batch that only its number of transactions closes. */
function of(maxTransactions: number) {
  return { maxTransactions, maxDelayMs: 600_000 };
}

it('hands over transactions together, in the order of their commits, and stores the last with one write', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const { pipeline, committed } = await recording(source, {
    target,
    batchDelivery: of(3),
  });
  const batches = batchesOf(pipeline);
  const delivered: bigint[] = [];
  pipeline.on('delivered', ({ commitLsn }) => delivered.push(commitLsn));
  pipeline.start();
  await pipeline.whenStreaming();
  await insertEach(source, range(1, 9));
  await pipeline.caughtUp();
  expect(committed).toEqual([
    [1, 2, 3],
    [4, 5, 6],
    [7, 8, 9],
  ]);
  expect(
    batches.map(({ transactions, reason }) => [transactions, reason]),
  ).toEqual([
    [3, 'count'],
    [3, 'count'],
    [3, 'count'],
  ]);
  expect(delivered).toHaveLength(9);
  expect(batches.at(-1)?.commitLsn).toBe(delivered.at(-1));
  expect(pipeline.status()).toMatchObject({ transactions: 9, changes: 9 });
  const [row] = await target.query<{ last: boolean }>(
    'select commit_lsn = (select max(commit_lsn) from recorded) as last from replicant_checkpoints',
  );
  expect(row?.last).toBe(true);
});

it('tells what the sink was handed and has not done yet', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const release = deferred();
  const handed: bigint[] = [];
  const { pipeline } = await recording(source, {
    target,
    batchDelivery: of(2),
    async inside({ transactions }) {
      handed.push(...transactions.map(({ commitLsn }) => commitLsn));
      await release.promise;
    },
  });
  pipeline.start();
  await pipeline.whenStreaming();
  await insertEach(source, [1, 2]);
  await waitFor(() => handed.length === 2);
  const { deliveredLsn, durableLsn, handler } = pipeline.status();
  const [first = 0n, last = 0n] = handed;
  expect(parseLsn(deliveredLsn ?? '')).toBeGreaterThan(last);
  expect(parseLsn(durableLsn ?? '')).toBeLessThanOrEqual(first);
  expect(handler).not.toBeNull();
  release.resolve();
});

it('hands over what has waited long enough, and is not confirmed before', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const { pipeline, committed } = await recording(source, {
    target,
    batchDelivery: { maxTransactions: 100, maxDelayMs: 1_500 },
  });
  const batches = batchesOf(pipeline);
  const commits: Lsn[] = [];
  pipeline.on('delivered', ({ commitLsn }) => commits.push(commitLsn));
  pipeline.start();
  await pipeline.whenStreaming();
  await insertEach(source, [1, 2]);
  const end = await currentLsn(source);
  await waitFor(() => pipeline.status().inflightBytes > 2 * 512);
  expect(committed).toEqual([]);
  const before = await readSlot(source, `slot_${source.name}`);
  await pipeline.caughtUp(end);
  expect(before?.confirmedFlushLsn).toBeLessThanOrEqual(present(commits[0]));
  expect(committed).toEqual([[1, 2]]);
  expect(batches).toMatchObject([{ reason: 'delay', transactions: 2 }]);
  expect(pipeline.status().inflightBytes).toBe(0);
});

it('closes a batch at a quarter of what may be held', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const { pipeline, committed } = await recording(source, {
    target,
    batchDelivery: of(1_000),
    maxInflightBytes: 64 * 1024,
  });
  const batches = batchesOf(pipeline);
  pipeline.start();
  await pipeline.whenStreaming();
  for (const id of range(1, 40))
    await source.query("insert into t values ($1, repeat('x', 2000))", [id]);
  await waitFor(() => committed.flat().length >= 30);
  expect(batches.every(({ reason }) => reason === 'bytes')).toBe(true);
  expect(
    Math.max(...batches.map(({ transactions }) => transactions)),
  ).toBeLessThan(9);
  await pipeline.stop();
  expect(await recorded(target)).toEqual(range(1, 40));
});

it('gives a transaction that is too large to be held alone, behind the open batch', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const { pipeline, committed } = await recording(source, {
    target,
    batchDelivery: of(100),
  });
  const batches = batchesOf(pipeline);
  pipeline.start();
  await pipeline.whenStreaming();
  await insertEach(source, [1, 2]);
  await source.query(
    "insert into t select g, repeat('x', 600) from generate_series(3, 5002) g",
  );
  await insertEach(source, [5003]);
  await waitFor(() => committed.length === 2, { timeout: 20_000 });
  expect(committed[0]).toEqual([1, 2]);
  expect(committed[1]).toEqual(range(3, 5002));
  await pipeline.stop();
  expect(
    batches.map(({ transactions, reason }) => [transactions, reason]),
  ).toEqual([
    [2, 'large'],
    [1, 'stop'],
  ]);
  expect(await recorded(target)).toEqual(range(1, 5003));
});

it('does not confirm what concerns nobody ahead of an open batch', async () => {
  const { source, target } = await sourceAndTarget(
    suite,
    `create table t(id int primary key, v text); create table other(id int); insert into other values (1);
     create publication p for table t, table other with (publish = 'insert')`,
  );
  const slotName = `slot_${source.name}`;
  const { pipeline } = await recording(source, {
    target,
    batchDelivery: of(2),
  });
  pipeline.start();
  await pipeline.whenStreaming();
  await insertEach(source, [1]);
  await waitFor(() => pipeline.status().inflightBytes > 0);
  const [first] = await source.query<{ lsn: string }>(
    'select pg_current_wal_lsn()::text as lsn',
  );
  await source.query('delete from other');
  await source.query("select pg_logical_emit_message(true, 'x', 'x')");
  // The server has told its position since.
  await waitFor(
    async () =>
      (
        await source.query<{ past: boolean }>(
          'select sent_lsn > $1::text::pg_lsn as past from pg_stat_replication where application_name like $2',
          [first?.lsn, 'nestjs-replicant%'],
        )
      ).some(({ past }) => past),
    { message: 'the server to have sent more' },
  );
  const [slot] = await source.query<{ ahead: boolean }>(
    'select confirmed_flush_lsn > $2::text::pg_lsn as ahead from pg_replication_slots where slot_name = $1',
    [slotName, first?.lsn],
  );
  expect(slot?.ahead).toBe(false);
  await insertEach(source, [2]);
  await pipeline.caughtUp();
  expect(await recorded(target)).toEqual([1, 2]);
});

it('a fault inside a batch undoes all of it, and after the restart each transaction takes effect once', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const options = { target, batchDelivery: of(3) };
  const first = await recording(source, {
    ...options,
    async inside({ ids }) {
      if (ids.includes(5)) throw new Error('no');
    },
  });
  first.pipeline.start();
  await first.pipeline.whenStreaming();
  await insertEach(source, range(1, 6));
  const halt = await haltedFor(first.pipeline, 'sink_failed');
  expect(halt.lsn).toBeNull();
  expect(halt.detail).toMatch(
    /^a handler of RecordingSink, given the transactions from [0-9A-F]+\/[0-9A-F]+ to [0-9A-F]+\/[0-9A-F]+, failed with Error$/,
  );
  expect(await recorded(target)).toEqual([1, 2, 3]);
  const before = await slotAndCheckpoint(source, target);
  await first.pipeline.stop();
  expect(await slotAndCheckpoint(source, target)).toEqual(before);

  const second = await recording(source, options);
  second.pipeline.start();
  await second.pipeline.caughtUp();
  expect(await recorded(target)).toEqual(range(1, 6));
});

it('a halt at a batch of one names its transaction', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const { pipeline } = await recording(source, {
    target,
    batchDelivery: of(1),
    inside: async () => {
      throw new Error('no');
    },
  });
  pipeline.start();
  await pipeline.whenStreaming();
  await insertEach(source, [1]);
  const halt = await haltedFor(pipeline, 'sink_failed');
  expect(halt.lsn).toBeTypeOf('bigint');
});

it('a lost connection discards the open batch, which comes again', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const { pipeline, committed } = await recording(source, {
    target,
    batchDelivery: of(4),
  });
  pipeline.start();
  await pipeline.whenStreaming();
  await insertEach(source, [1, 2, 3]);
  await waitFor(() => pipeline.status().inflightBytes > 3 * 512);
  const lost = deferred();
  pipeline.on('reconnect', () => lost.resolve());
  await terminateBackend(
    source,
    await walsenderPid(source, `slot_${source.name}`),
  );
  await lost.promise;
  await insertEach(source, [4]);
  await pipeline.caughtUp();
  expect(committed).toEqual([[1, 2, 3, 4]]);
  expect(await recorded(target)).toEqual([1, 2, 3, 4]);
});

it('a clean stop delivers and confirms the open batch, so that nothing comes again', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const options = { target, batchDelivery: of(100) };
  const first = await recording(source, options);
  const batches = batchesOf(first.pipeline);
  first.pipeline.start();
  await first.pipeline.whenStreaming();
  await insertEach(source, [1, 2, 3]);
  const end = await currentLsn(source);
  await waitFor(() => first.pipeline.status().inflightBytes > 3 * 512);
  await first.pipeline.stop();
  expect(first.committed).toEqual([[1, 2, 3]]);
  expect(batches).toMatchObject([{ reason: 'stop', transactions: 3 }]);
  const slot = await readSlot(source, `slot_${source.name}`);
  expect(slot?.confirmedFlushLsn).toBeGreaterThanOrEqual(end);

  const second = await recording(source, options);
  second.pipeline.start();
  await second.pipeline.whenStreaming();
  await insertEach(source, [4]);
  await waitFor(() => second.pipeline.status().inflightBytes > 512);
  await second.pipeline.stop();
  expect(second.committed).toEqual([[4]]);
  expect(await recorded(target)).toEqual([1, 2, 3, 4]);
});

it('a stop does not wait for a batch longer than the option drainTimeout', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const release = deferred();
  const { pipeline } = await recording(source, {
    target,
    batchDelivery: of(100),
    drainTimeout: 200,
    inside: () => release.promise,
  });
  pipeline.start();
  await pipeline.whenStreaming();
  await insertEach(source, [1]);
  await waitFor(() => pipeline.status().inflightBytes > 512);
  await pipeline.stop();
  expect(pipeline.state).toBe('stopped');
  expect(await recorded(target)).toEqual([]);
  release.resolve();
  await waitFor(async () => (await recorded(target)).length === 1);
});

it('delivers the open batch before it asks about a schema change', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const { pipeline, committed } = await recording(source, {
    target,
    batchDelivery: of(100),
  });
  const batches = batchesOf(pipeline);
  pipeline.start();
  await pipeline.whenStreaming();
  await insertEach(source, [1, 2]);
  await source.query('alter table t drop column v');
  await insertEach(source, [3]);
  const halt = await haltedFor(pipeline, 'schema_change/destructive');
  expect(halt.lsn).toBeTypeOf('bigint');
  expect(committed).toEqual([[1, 2]]);
  expect(batches).toMatchObject([{ reason: 'stop', transactions: 2 }]);
});
