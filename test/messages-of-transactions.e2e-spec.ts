import { describe, expect, it } from 'vitest';
import type { Transaction } from '../lib/engine/model/transaction.js';
import {
  capture,
  inserted,
  type Capture,
  type CaptureOptions,
} from './support/capture.js';
import { changesOf } from './support/changes-of.js';
import { range } from './support/copy.js';
import { haltedFor, slotAndCheckpoint } from './support/halted.js';
import { lifeline } from './support/killed-client.js';
import { emit, emitInTransaction, keepingHandler } from './support/messages.js';
import { present } from './support/present.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { deferred, waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '4s' } });

const MEBIBYTE = 1024 * 1024;

interface Streaming extends Capture {
  readonly source: TestDatabase;
  readonly target: TestDatabase;
}

/** A streaming pipeline that asks for messages. */
async function streaming(
  options: Partial<CaptureOptions> = {},
): Promise<Streaming> {
  const databases = await sourceAndTarget(suite);
  const captured = capture(databases.source, {
    target: databases.target,
    messages: true,
    ...options,
  });
  captured.pipeline.start();
  await captured.pipeline.whenStreaming();
  return { ...databases, ...captured };
}

/** Operations of changes and texts of messages, in the order of their ordinals. */
function inOrder(transaction: Transaction): string[] {
  const all = [
    ...changesOf(transaction).map(({ ordinal, op }) => ({ ordinal, what: op })),
    ...transaction.messages.map(({ ordinal, content }) => ({
      ordinal: ordinal ?? -1,
      what: content.toString(),
    })),
  ].toSorted((one, other) => one.ordinal - other.ordinal);
  expect(all.map(({ ordinal }) => ordinal)).toEqual(range(0, all.length - 1));
  return all.map(({ what }) => what);
}

describe('messages of a transaction', () => {
  it('come with it, and with the positions that the server gave', async () => {
    const { source, applied } = await streaming();
    const client = await source.connect();
    await client.query('begin');
    await client.query("insert into t values (1, 'a')");
    const positions = [await emitInTransaction(client, 'outbox', 'first')];
    await client.query("update t set v = 'b'");
    positions.push(await emitInTransaction(client, 'Größe 😀', 'second'));
    positions.push(await emitInTransaction(client, '', 'third'));
    await client.query('delete from t');
    await client.query('commit');
    const transaction = await waitFor(() => applied[0]);
    expect(transaction.messages).toMatchObject([
      {
        transactional: true,
        lsn: positions[0],
        prefix: 'outbox',
        content: Buffer.from('first'),
        ordinal: 1,
      },
      { lsn: positions[1], prefix: 'Größe 😀', ordinal: 3 },
      { lsn: positions[2], prefix: '', ordinal: 4 },
    ]);
    expect(inOrder(transaction)).toEqual([
      'insert',
      'first',
      'update',
      'second',
      'third',
      'delete',
    ]);
  });

  it('make one of their own, without a change, also in a transaction of its own', async () => {
    const { source, applied, pipeline } = await streaming();
    const delivered: number[] = [];
    pipeline.on('delivered', ({ changes }) => delivered.push(changes));
    await emitInTransaction(source, 'alone', 'one');
    await pipeline.caughtUp();
    expect(applied).toMatchObject([
      { changes: [], messages: [{ prefix: 'alone', ordinal: 0 }] },
    ]);
    expect(delivered).toEqual([0]);
  });

  it('are gone with the savepoint, or the transaction, that was rolled back', async () => {
    const { source, applied, pipeline } = await streaming();
    const client = await source.connect();
    await client.query('begin');
    await emitInTransaction(client, 'p', 'kept');
    await client.query('savepoint s');
    await emitInTransaction(client, 'p', 'undone');
    await client.query('insert into t values (1)');
    await client.query('rollback to s');
    await client.query('insert into t values (2)');
    await emitInTransaction(client, 'p', 'kept too');
    await client.query('commit');
    await client.query('begin');
    await client.query('insert into t values (3)');
    await emitInTransaction(client, 'p', 'undone');
    await client.query('rollback');
    await pipeline.caughtUp();
    expect(applied.map(inOrder)).toEqual([['kept', 'insert', 'kept too']]);
    expect(inserted(applied, 'id')).toEqual([2]);
  });

  it('come once with their row across a kill before the acknowledgement', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const line = await lifeline(source);
    const first = capture(source, {
      target,
      messages: true,
      connection: line.connection,
      drainTimeout: 100,
      // What it advances to can no longer be told.
      apply: async () => line.proxy.cut(),
    });
    first.pipeline.start();
    await first.pipeline.whenStreaming();
    const client = await source.connect();
    await client.query('begin');
    await client.query('insert into t values (1)');
    await emitInTransaction(client, 'p', 'once');
    await client.query('commit');
    await waitFor(() => first.applied.length === 1);
    await line.kill();
    const second = capture(source, { target, messages: true });
    second.pipeline.start();
    await second.pipeline.whenStreaming();
    await source.query('insert into t values (2)');
    await waitFor(() => second.applied.length === 1);
    expect(first.applied.map(inOrder)).toEqual([['insert', 'once']]);
    expect(second.calls.map(inOrder)).toEqual([['insert']]);
    expect(inserted(second.calls, 'id')).toEqual([2]);
  });

  it.each(['exact', 'text'] as const)(
    'hold a copy of their bytes, whatever they are (types: %s; D07)',
    async (types) => {
      const { source, applied, pipeline } = await streaming({ types });
      const large = Buffer.alloc(MEBIBYTE, 'pattern\0');
      const contents = [
        Buffer.alloc(0),
        Buffer.from([0]),
        Buffer.from([0, 255, 0, 254, 195, 40]),
        large,
      ];
      for (const content of contents)
        await emitInTransaction(source, 'bytes', content);
      await source.query(
        `do $$ begin for i in 1..2000 loop
           perform pg_logical_emit_message(true, 'x', decode(repeat(lpad(to_hex(i % 256), 2, '0'), 200 + (i * 37) % 4000), 'hex'));
           if i % 50 = 0 then commit; end if;
         end loop; end $$`,
      );
      await pipeline.caughtUp();
      const found = applied.flatMap(({ messages }) => messages);
      expect(found).toHaveLength(2_004);
      expect(
        contents.map((content, i) => found[i]?.content.equals(content)),
      ).toEqual([true, true, true, true]);
      const overwritten = found
        .slice(4)
        .filter(
          ({ content }, i) =>
            content.length !== 200 + (((i + 1) * 37) % 4000) ||
            content.some((byte) => byte !== (i + 1) % 256),
        );
      expect(overwritten).toEqual([]);
    },
  );
});

describe('messages of a transaction that is handed over while it arrives', () => {
  const ROWS = 300;

  /** Rows of 20 kB with a message before, one amid and one after them. */
  async function large(source: TestDatabase): Promise<void> {
    const client = await source.connect();
    const rows = (first: number) =>
      client.query(
        "insert into t select g, repeat('x', 20000) from generate_series($1::int, $2::int) g",
        [first, first + ROWS - 1],
      );
    await client.query('begin');
    await emitInTransaction(client, 'p', 'before');
    await rows(1);
    await emitInTransaction(client, 'p', 'amid');
    await rows(1_001);
    await emitInTransaction(client, 'p', 'after');
    await client.query('commit');
  }

  it('are complete when the changes were read to the end, with ordinals among them', async () => {
    const ordinals: (number | null)[] = [];
    const known: number[] = [];
    const { source, applied } = await streaming({
      maxInflightBytes: 256 * 1024,
      async apply({ changes, messages }) {
        expect(Array.isArray(changes)).toBe(false);
        known.push(messages.length);
        for await (const { ordinal } of changes) ordinals.push(ordinal);
        known.push(messages.length);
      },
    });
    await large(source);
    const { messages } = await waitFor(() => applied[0]);
    expect(known).toEqual([1, 3]);
    expect(messages).toMatchObject([
      { content: Buffer.from('before'), ordinal: 0 },
      { content: Buffer.from('amid'), ordinal: 1 + ROWS },
      { content: Buffer.from('after'), ordinal: 2 + 2 * ROWS },
    ]);
    const all = [...ordinals, ...messages.map(({ ordinal }) => ordinal)];
    expect(all.toSorted((one, other) => Number(one) - Number(other))).toEqual(
      range(0, 2 + 2 * ROWS),
    );
  });

  it('are the same when it comes again because the connection was lost in between', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const line = await lifeline(source);
    const reached = deferred();
    const { pipeline, applied, calls } = capture(source, {
      target,
      messages: true,
      connection: line.connection,
      maxInflightBytes: 256 * 1024,
      async apply({ changes }) {
        let count = 0;
        for await (const _ of changes) {
          count += 1;
          if (count !== 10 || calls.length > 1) continue;
          line.proxy.reset();
          reached.resolve();
        }
      },
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await large(source);
    await reached.promise;
    await waitFor(() => applied.length === 1);
    expect(calls).toHaveLength(2);
    expect(applied[0]?.messages.map(({ ordinal }) => ordinal)).toEqual([
      0,
      1 + ROWS,
      2 + 2 * ROWS,
    ]);
  });

  it('may be all there is in it', async () => {
    const seen: unknown[] = [];
    const { source, applied } = await streaming({
      async apply({ changes, commitEndLsn }) {
        seen.push(commitEndLsn);
        for await (const change of changes) seen.push(change);
      },
    });
    const client = await source.connect();
    await client.query('begin');
    for (const _ of range(1, 5))
      await emitInTransaction(client, 'p', Buffer.alloc(MEBIBYTE, 1));
    await client.query('commit');
    const { messages, commitEndLsn } = await waitFor(() => applied[0]);
    expect(messages).toHaveLength(5);
    expect(messages.every(({ content }) => content.length === MEBIBYTE)).toBe(
      true,
    );
    expect(seen).toEqual([null]);
    expect(present(commitEndLsn)).toBeGreaterThan(0n);
  });
});

describe('messages that are larger than what may be held', () => {
  it.each([
    ['before it is handed over', 0],
    ['while it is read', 600],
  ])(
    'halt the pipeline at their transaction, %s, until they may be',
    async (_place, rows) => {
      const maxInflightBytes = MEBIBYTE;
      const { source, target, pipeline, applied, calls } = await streaming({
        maxInflightBytes,
        async apply({ changes }) {
          for await (const change of changes) void change;
        },
      });
      await source.query('insert into t values (0)');
      await waitFor(() => applied.length === 1);
      const client = await source.connect();
      await client.query('begin');
      await client.query(
        "insert into t select g, repeat('x', 5000) from generate_series(1, $1::int) g",
        [rows],
      );
      for (const _ of range(1, 3))
        await emitInTransaction(client, 'the secret', Buffer.alloc(400_000));
      await client.query('commit');
      await source.query('insert into t values (-1)');
      const { detail, lsn } = await haltedFor(
        pipeline,
        'transaction_too_large',
      );
      expect(detail).toBe(
        `the messages of the transaction hold more than maxInflightBytes (${maxInflightBytes})`,
      );
      expect(calls).toHaveLength(rows === 0 ? 1 : 2);
      const before = await slotAndCheckpoint(source, target);
      pipeline.start();
      expect(await haltedFor(pipeline, 'transaction_too_large')).toMatchObject({
        lsn,
      });
      expect(await slotAndCheckpoint(source, target)).toEqual(before);
      expect(applied).toHaveLength(1);

      const mended = capture(source, {
        target,
        messages: true,
        maxInflightBytes: 2 * MEBIBYTE,
        async apply({ changes }) {
          for await (const change of changes) void change;
        },
      });
      mended.pipeline.start();
      await mended.pipeline.caughtUp();
      expect(mended.applied).toHaveLength(2);
      expect(mended.applied[0]).toMatchObject({ commitLsn: lsn });
      expect(mended.applied[0]?.messages).toHaveLength(3);
    },
  );
});

it('without the option the server is asked for none, and a transaction of messages alone concerns nobody', async () => {
  const message = keepingHandler();
  const { source, applied, pipeline } = await streaming({
    messages: false,
    sink: { message },
  });
  await emitInTransaction(source, 'p', 'one');
  await emit(source, 'p', 'two');
  const client = await source.connect();
  await client.query('begin');
  await client.query('insert into t values (1)');
  await emitInTransaction(client, 'p', 'three');
  await client.query('commit');
  await pipeline.caughtUp();
  expect(applied.map(inOrder)).toEqual([['insert']]);
  expect(message.calls).toEqual([]);
});
