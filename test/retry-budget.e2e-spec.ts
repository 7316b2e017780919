import { inspect } from 'node:util';
import { Client } from 'pg';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { answeringProxy } from './support/answering-proxy.js';
import { capture, inserted } from './support/capture.js';
import { haltedFor } from './support/halted.js';
import { readSlot } from './support/logical-slot.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

/** With one slot and no more. */
const small = useServer({
  settings: { max_replication_slots: 1, max_wal_senders: 2 },
});
const suite = useServer();

/** Takes a place among the WAL senders. */
async function walSender(source: TestDatabase): Promise<Client> {
  const config = { ...source.connection, replication: 'database' };
  const client = new Client(config);
  client.on('error', () => {});
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

/** The shortest delays that the jitter allows. */
function withoutJitter(): void {
  vi.spyOn(Math, 'random').mockReturnValue(0);
  onTestFinished(() => void vi.restoreAllMocks());
}

describe('a fault before the stream', () => {
  it.each([0, 2, 5])(
    'is tried again %d times, and then halts (13.4 no. 24, I05)',
    async (maxCommandRetries) => {
      withoutJitter();
      const { source, target } = await sourceAndTarget(small);
      await source.query(
        "select pg_create_logical_replication_slot('other', 'pgoutput')",
      );
      const { pipeline, applied } = capture(source, {
        target,
        maxCommandRetries,
      });
      const attempts: { attempt: number; delayMilliseconds: number }[] = [];
      pipeline.on('reconnect', (event) => attempts.push(event));
      pipeline.start();
      const halt = await haltedFor(pipeline, 'command_error/exhausted');
      const made =
        maxCommandRetries === 0
          ? '1 attempt'
          : `${maxCommandRetries + 1} attempts`;
      expect(halt.detail).toBe(
        `server error 53400 (configuration_limit_exceeded) while connecting, at ${made}`,
      );
      expect(attempts.map(({ attempt }) => attempt)).toEqual(
        Array.from({ length: maxCommandRetries }, (_, index) => index + 1),
      );
      expect(
        attempts.map(({ delayMilliseconds }) => delayMilliseconds),
      ).toEqual([250, 500, 1_000, 2_000, 4_000].slice(0, maxCommandRetries));
      expect(await readSlot(source, `slot_${source.name}`)).toBeNull();

      // Once it is mended, a new start has a budget of its own.
      await source.query("select pg_drop_replication_slot('other')");
      pipeline.start();
      await pipeline.whenStreaming();
      await source.query('insert into t values (1)');
      await pipeline.caughtUp();
      expect(inserted(applied, 'id')).toEqual([1]);
    },
    60_000,
  );

  it('ends when it is mended in time', async () => {
    const { source, target } = await sourceAndTarget(small);
    await source.query(
      "select pg_create_logical_replication_slot('other', 'pgoutput')",
    );
    const { pipeline } = capture(source, { target });
    pipeline.start();
    await waitFor(() => pipeline.status().attempt >= 2);
    await source.query("select pg_drop_replication_slot('other')");
    await pipeline.whenStreaming();
    expect(pipeline.status().attempt).toBe(0);
  });
});

describe('a server that takes no more sessions', () => {
  it('is tried for ever, even without retries (I05)', async () => {
    withoutJitter();
    const { source, target } = await sourceAndTarget(small);
    const occupied = await Promise.all([walSender(source), walSender(source)]);
    const { pipeline } = capture(source, { target, maxCommandRetries: 0 });
    pipeline.start();
    await waitFor(() => pipeline.status().attempt >= 3);
    expect(pipeline.reason).toBe('server error 53300 (too_many_connections)');
    expect(pipeline.halt).toBeNull();
    await Promise.all(occupied.map((client) => client.end()));
    await pipeline.whenStreaming();
  });

  it.each(['57P03', '57P01', '57P02', '53300'])(
    'is tried for ever when it says %s at login (G09)',
    async (sqlstate) => {
      withoutJitter();
      const { source, target } = await sourceAndTarget(suite);
      const proxy = await answeringProxy(source.connection, 'login');
      proxy.sqlstate = sqlstate;
      proxy.times = 3;
      const { pipeline } = capture(source, {
        target,
        connection: { ...source.connection, port: proxy.port },
        maxCommandRetries: 0,
      });
      pipeline.start();
      const reasons: string[] = [];
      pipeline.on('reconnect', ({ reason }) => reasons.push(reason));
      await pipeline.whenStreaming();
      expect(reasons).toHaveLength(3);
      for (const reason of reasons)
        expect(reason).toContain(`server error ${sqlstate} (`);
    },
  );

  it('is given up when it reports at login what it does not report of itself', async () => {
    withoutJitter();
    const { source, target } = await sourceAndTarget(suite);
    const proxy = await answeringProxy(source.connection, 'login');
    proxy.times = 9;
    const { pipeline } = capture(source, {
      target,
      connection: { ...source.connection, port: proxy.port },
      maxCommandRetries: 1,
    });
    pipeline.start();
    const halt = await haltedFor(pipeline, 'command_error/exhausted');
    expect(proxy.answered).toBe(2);
    expect(inspect([halt, pipeline.status()], { depth: 9 })).not.toContain(
      'planted-secret',
    );
  });
});

describe('WAL that the server cannot decode', () => {
  it('is tried again as often as other faults, and then halts; what came before is delivered (XX000)', async () => {
    withoutJitter();
    const { source, target } = await sourceAndTarget(
      suite,
      `create schema s;
       create table t(id int primary key, v text) partition by range (id);
       create table low partition of t for values from (0) to (10);
       create table s.high partition of t for values from (10) to (20);
       create publication p for table t`,
    );
    const { pipeline, applied } = capture(source, {
      target,
      maxCommandRetries: 2,
    });
    const reconnects: string[] = [];
    pipeline.on('reconnect', ({ reason }) => reconnects.push(reason));
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    // The output plugin looks up the name of the schema, in the catalog as it was at this point of the WAL.
    await source.query("delete from pg_namespace where nspname = 's'");
    await source.query('insert into t values (10)');
    const halt = await haltedFor(pipeline, 'command_error/exhausted');
    expect(halt.detail).toBe(
      'server error XX000 (internal_error) while streaming, at 3 attempts',
    );
    expect(reconnects).toEqual([
      'server error XX000 (internal_error)',
      'server error XX000 (internal_error)',
    ]);
    expect(inserted(applied, 'id')).toEqual([1]);
  });

  it('has a new budget behind each transaction that was delivered', async () => {
    withoutJitter();
    const { source, target } = await sourceAndTarget(suite);
    const proxy = await answeringProxy(source.connection, 'stream');
    const { pipeline, applied } = capture(source, {
      target,
      connection: { ...source.connection, port: proxy.port },
      maxCommandRetries: 1,
    });
    pipeline.start();
    await pipeline.whenStreaming();
    for (let id = 1; id <= 3; id += 1) {
      proxy.times = 1;
      await source.query(
        'select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = $1',
        [pipeline.options.slotName],
      );
      await waitFor(() => proxy.answered === id);
      await source.query('insert into t values ($1)', [id]);
      await waitFor(() => applied.length === id);
      expect(pipeline.halt).toBeNull();
    }
    proxy.times = 9;
    await source.query(
      'select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = $1',
      [pipeline.options.slotName],
    );
    await haltedFor(pipeline, 'command_error/exhausted');
    expect(inserted(applied, 'id')).toEqual([1, 2, 3]);
  });
});

describe('a permanent error at START_REPLICATION', () => {
  it('makes no storm of connections: those of the budget, and no more (G10)', async () => {
    const { source, target } = await sourceAndTarget(small);
    await source.query(
      "select pg_create_logical_replication_slot('other', 'pgoutput')",
    );
    const { pipeline } = capture(source, { target, maxCommandRetries: 3 });
    let connections = 0;
    pipeline.on('reconnect', () => (connections += 1));
    const began = performance.now();
    pipeline.start();
    await haltedFor(pipeline, 'command_error/exhausted');
    expect(connections).toBe(3);
    // Half of 0.5 + 1 + 2 s at least.
    expect(performance.now() - began).toBeGreaterThan(1_750);
    const commands = small.server
      .log()
      .split(`CREATE_REPLICATION_SLOT slot_${source.name}`).length;
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(
      small.server.log().split(`CREATE_REPLICATION_SLOT slot_${source.name}`),
    ).toHaveLength(commands);
  });
});
