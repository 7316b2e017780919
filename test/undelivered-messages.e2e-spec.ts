import { describe, expect, it } from 'vitest';
import { inserted } from './support/capture.js';
import { range } from './support/copy.js';
import { haltedFor, slotAndCheckpoint } from './support/halted.js';
import { lifeline } from './support/killed-client.js';
import { emit, emitInTransaction, taking } from './support/messages.js';
import { present } from './support/present.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import { tamperingProxy } from './support/tampering-proxy.js';
import { deferred, waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '4s' } });

const LIMIT = 256 * 1024;
const MESSAGE_BYTES = 20_000;
/** One chunk of the socket may arrive above the limit, and a message that it completes. */
const MOST = LIMIT + 65_536 + MESSAGE_BYTES + 1_024;

describe('a message that the server does not know to be handled', () => {
  it('comes again after a kill behind its handler, and no transaction does', async () => {
    const databases = await sourceAndTarget(suite);
    const { source } = databases;
    const line = await lifeline(source);
    const killed = taking(databases, {
      connection: line.connection,
      drainTimeout: 100,
      work: async () => line.proxy.cut(),
    });
    killed.pipeline.start();
    await killed.pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await waitFor(() => killed.applied.length === 1);
    const lsn = await emit(source, 'p', 'again');
    await waitFor(() => killed.message.calls.length === 1);
    await line.kill();

    const { pipeline, calls, message } = taking(databases);
    pipeline.start();
    await pipeline.caughtUp(lsn);
    expect(message.calls).toEqual(killed.message.calls);
    expect(message.calls).toMatchObject([{ lsn }]);
    expect(calls).toEqual([]);
  });

  it('comes again though it was taken at the second attempt, and has all its attempts again', async () => {
    const databases = await sourceAndTarget(suite);
    const { source } = databases;
    const line = await lifeline(source);
    const { pipeline, message } = taking(databases, {
      connection: line.connection,
      sinkRetry: { maxRetries: 1, backoffMs: 1 },
      async work() {
        if (message.calls.length % 2 === 1) throw new Error('no');
      },
    });
    let taken = 0;
    pipeline.on('message', () => {
      taken += 1;
      if (taken === 1) line.proxy.reset();
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await emit(source, 'p');
    await waitFor(() => taken === 2 || pipeline.halt !== null);
    expect(pipeline.halt).toBeNull();
    expect(message.calls).toHaveLength(4);
  });

  it('comes again after its handler has outlived the connection, once', async () => {
    const databases = await sourceAndTarget(suite);
    const { source } = databases;
    const line = await lifeline(source);
    const { pipeline, calls, message } = taking(databases, {
      connection: line.connection,
      async work() {
        if (message.calls.length > 1) return;
        line.proxy.reset();
        await waitFor(() => pipeline.state === 'reconnecting');
      },
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    const lsn = await emit(source, 'p');
    await source.query('insert into t values (2)');
    await waitFor(() => calls.length === 2);
    await pipeline.caughtUp();
    expect(message.calls.map((one) => one.lsn)).toEqual([lsn, lsn]);
    expect(inserted(calls, 'id')).toEqual([1, 2]);
  });

  it('hides no transaction that commits before it and was not delivered when the process was killed', async () => {
    const databases = await sourceAndTarget(suite);
    const { source } = databases;
    const line = await lifeline(source);
    const killed = taking(databases, {
      connection: line.connection,
      drainTimeout: 100,
      apply: () => deferred().promise,
    });
    killed.pipeline.start();
    await killed.pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    const lsn = await emit(source, 'p');
    await waitFor(() => killed.pipeline.status().inflightBytes > 1_024);
    await line.kill();
    expect(killed.message.calls).toEqual([]);

    const { pipeline, applied, message } = taking(databases);
    pipeline.start();
    await pipeline.caughtUp(lsn);
    expect(inserted(applied, 'id')).toEqual([1]);
    expect(message.calls).toMatchObject([{ lsn }]);
  });

  it('is handled before a stop ends, and what came behind it follows the next start', async () => {
    const databases = await sourceAndTarget(suite);
    const { source } = databases;
    const gate = deferred();
    const { pipeline, applied, message } = taking(databases, {
      work: () => gate.promise,
    });
    pipeline.start();
    await pipeline.whenStreaming();
    const positions = [await emit(source, 'p'), await emit(source, 'p')];
    await source.query('insert into t values (1)');
    await waitFor(() => message.calls.length === 1);
    const stopped = pipeline.stop();
    gate.resolve();
    await stopped;
    expect(applied).toEqual([]);
    pipeline.start();
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1]);
    expect(message.calls.map(({ lsn }) => lsn)).toEqual(positions);
  });
});

describe('a message that its handler refuses', () => {
  it('halts the pipeline at its position, with everything behind it undelivered, until it is taken', async () => {
    const databases = await sourceAndTarget(suite);
    const { source, target } = databases;
    const error = new TypeError('the secret');
    let broken = true;
    const { pipeline, applied, message } = taking(databases, {
      async work({ prefix }) {
        if (broken && prefix === 'secret prefix') throw error;
      },
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    const good = await emit(source, 'good');
    await pipeline.caughtUp(good);
    const lsn = await emit(source, 'secret prefix', 'secret content');
    await source.query('insert into t values (2)');
    const halt = await haltedFor(pipeline, 'sink_failed');
    expect(halt.lsn).toBe(lsn);
    expect(halt.detail).toBe(
      'an @OnMessage() method of TestSink failed with TypeError',
    );
    expect(halt.sinkError()).toBe(error);
    const before = await slotAndCheckpoint(source, target);
    pipeline.start();
    await haltedFor(pipeline, 'sink_failed');
    expect(await slotAndCheckpoint(source, target)).toEqual(before);
    expect(inserted(applied, 'id')).toEqual([1]);
    broken = false;
    pipeline.start();
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1, 2]);
    expect(message.calls.at(-1)).toMatchObject({ lsn });
  });

  it('comes to it again where the option sinkRetry allows that', async () => {
    const databases = await sourceAndTarget(suite);
    const { pipeline, message } = taking(databases, {
      sinkRetry: { maxRetries: 2, backoffMs: 1 },
      async work() {
        if (message.calls.length < 3) throw new Error('not yet');
      },
    });
    pipeline.start();
    await pipeline.whenStreaming();
    const lsn = await emit(databases.source, 'p');
    await pipeline.caughtUp(lsn);
    expect(message.calls.map((one) => one.lsn)).toEqual([lsn, lsn, lsn]);
    expect(pipeline.halt).toBeNull();
  });
});

it('messages that the sink does not take in time hold the socket, and are all handled afterwards', async () => {
  const databases = await sourceAndTarget(suite);
  const { source } = databases;
  const gate = deferred();
  const { pipeline, message } = taking(databases, {
    maxInflightBytes: LIMIT,
    work: () => gate.promise,
  });
  pipeline.start();
  await pipeline.whenStreaming();
  await source.query(
    `do $$ begin for i in 1..1500 loop perform pg_logical_emit_message(false, 'p', repeat('x', ${MESSAGE_BYTES})); end loop; end $$`,
  );
  const last = await emit(source, 'last');
  await waitFor(() => pipeline.status().inflightBytes >= LIMIT);
  let most = 0;
  for (const _ of range(1, 20)) {
    await source.query('select');
    most = Math.max(most, pipeline.status().inflightBytes);
  }
  expect(most).toBeLessThan(MOST);
  expect(message.calls).toHaveLength(1);
  gate.resolve();
  await pipeline.caughtUp(last);
  expect(message.calls).toHaveLength(1_501);
  expect(new Set(message.calls.map(({ lsn }) => lsn)).size).toBe(1_501);
  expect(pipeline.status().inflightBytes).toBe(0);
});

it('a message that claims to stand outside transactions amid one halts', async () => {
  const databases = await sourceAndTarget(suite);
  const { source } = databases;
  const { pipeline, calls, message } = taking(databases, {
    connection: await tamperingProxy(source.connection, (bytes) => {
      if (bytes[0] === 'M'.charCodeAt(0)) bytes[1] = 0;
    }),
  });
  pipeline.start();
  await pipeline.whenStreaming();
  await emitInTransaction(source, 'the secret');
  const { detail, lsn } = await haltedFor(pipeline, 'protocol_violation');
  expect(detail).toBe('a message outside transactions before commit');
  expect(present(lsn)).toBeGreaterThan(0n);
  expect(calls).toEqual([]);
  expect(message.calls).toEqual([]);
});
