import { expect, it } from 'vitest';
import { capture, inserted } from './support/capture.js';
import { lifeline } from './support/killed-client.js';
import { libraryCapture } from './support/library-capture.js';
import { confirmedUpTo } from './support/logical-slot.js';
import { emit, keepingHandler } from './support/messages.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '4s' } });

/** Commit position of the checkpoint that is stored. */
async function stored(target: TestDatabase): Promise<unknown> {
  const [row] = await target.query(
    'select commit_lsn from replicant_checkpoints',
  );
  return row?.['commit_lsn'];
}

it('a message comes behind the open batch of a sink, which it closes; one that nobody takes leaves it open', async () => {
  const order: unknown[] = [];
  const batches: unknown[] = [];
  const databases = await sourceAndTarget(suite);
  const { source, target } = databases;
  const { pipeline, checkpoints } = capture(source, {
    target,
    messages: true,
    batchDelivery: { maxTransactions: 3, maxDelayMs: 600_000 },
    sink: {
      async batch(transactions) {
        order.push(inserted(transactions, 'id'));
        for (const transaction of transactions) {
          await checkpoints.advance(
            (sql, values) => target.query(sql, [...values]),
            transaction,
          );
        }
      },
      message: {
        takes: (prefix) => prefix === 'mine',
        handle: async ({ content }) => void order.push(content.toString()),
      },
    },
  });
  pipeline.on('batch', ({ reason }) => batches.push(reason));
  pipeline.start();
  await pipeline.whenStreaming();
  for (const id of [1, 2])
    await source.query('insert into t values ($1)', [id]);
  await pipeline.caughtUp(await emit(source, 'mine', 'a'));
  await source.query('insert into t values (3)');
  await emit(source, 'other', 'b');
  await source.query('insert into t values (4)');
  await emit(source, 'other', 'c');
  await source.query('insert into t values (5)');
  await pipeline.caughtUp();
  expect(order).toEqual([[1, 2], 'a', [3, 4, 5]]);
  expect(batches).toEqual(['message', 'count']);
});

it('a message comes behind the checkpoint of what the library stores together, and leaves no trace in it', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const batches: unknown[] = [];
  const atMessage: unknown[] = [];
  const line = await lifeline(source);
  const message = keepingHandler(async () => {
    atMessage.push(await stored(target));
    if (message.calls.length === 2) line.proxy.cut();
  });
  const store = { batch: { maxTransactions: 100, maxDelayMs: 600_000 } };
  const killed = libraryCapture(source, target, store, {
    connection: line.connection,
    drainTimeout: 100,
    messages: true,
    sink: { message },
  });
  killed.pipeline.on('batch', ({ reason }) => batches.push(reason));
  killed.pipeline.start();
  await killed.pipeline.whenStreaming();
  for (const id of [1, 2])
    await source.query('insert into t values ($1)', [id]);
  await waitFor(() => killed.calls.length === 2);
  expect(await stored(target)).toBeNull();
  await confirmedUpTo(source, `slot_${source.name}`, await emit(source, 'p'));
  const lsn = await emit(source, 'p');
  await waitFor(() => message.calls.length === 2);
  await line.kill();
  const commit = await stored(target);
  expect(commit).not.toBeNull();
  expect(atMessage).toEqual([commit, commit]);
  expect(batches).toEqual(['message']);

  const again = keepingHandler();
  const { pipeline, calls } = libraryCapture(source, target, store, {
    messages: true,
    sink: { message: again },
  });
  pipeline.start();
  await pipeline.caughtUp(lsn);
  expect(again.calls.map((one) => one.lsn)).toEqual([lsn]);
  expect(calls).toEqual([]);
  expect(inserted(killed.calls, 'id')).toEqual([1, 2]);
  await pipeline.stop();
  expect(await stored(target)).toBe(commit);
});
