import { describe, expect, it, onTestFinished } from 'vitest';
import type { Pipeline } from '../lib/engine/pipeline.js';
import type { SlotStatus } from '../lib/engine/telemetry/slot-status.js';
import { capture } from './support/capture.js';
import { haltedFor } from './support/halted.js';
import { walsenderPid } from './support/logical-slot.js';
import {
  flushedLsn,
  sourceAndTarget,
  writeNoise,
} from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import { TcpProxy } from './support/tcp-proxy.js';
import type { TestDatabase } from './support/test-database.js';
import { deferred, waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '2s' } });

/** So that the next probe asks anew. */
const EAGER = { cacheFor: 1, timeout: 10_000 };

/** The checkpoint is on the same server, so that storing a position moves the end a little further. */
function isSmall(bytes: number | null): boolean {
  return bytes !== null && bytes < 10_000;
}

const SMALL: unknown = expect.toSatisfy(isSmall);
/** Servers before PostgreSQL 16 print a line break as a question mark. */
const PRINTABLE: unknown = expect.stringMatching(/^nightly[\x20-\x7e]+job$/);

/** Asks until the slot is as wanted. */
function slotWhen(
  pipeline: Pipeline,
  wanted: (slot: SlotStatus) => boolean,
  timeout = 20_000,
): Promise<SlotStatus> {
  return waitFor(
    async () => {
      await pipeline.checkSlot();
      const { slot } = pipeline.status();
      return slot !== null && wanted(slot) ? slot : null;
    },
    { timeout, message: 'the slot to be so' },
  );
}

/** Inserts and leaves the transaction open. */
async function openTransaction(source: TestDatabase): Promise<number> {
  const client = await source.connect();
  await client.query("set application_name = E'nightly\\njob'; begin");
  await client.query('insert into t values (-1)');
  const { rows } = await client.query<{ pid: number }>(
    'select pg_backend_pid() as pid',
  );
  return rows[0]?.pid ?? 0;
}

async function role(source: TestDatabase): Promise<string> {
  const name = `role_${source.name}`;
  await source.query(`create role ${name} login replication password 'x'`);
  onTestFinished(
    async () => void (await suite.server.query(`drop role ${name}`)),
  );
  return name;
}

describe('the slot as the source knows it', () => {
  it('is unknown until somebody asks, then held by our session, with no lag while idle (B01)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline } = capture(source, { target, health: EAGER });
    pipeline.start();
    await pipeline.whenStreaming();
    expect(pipeline.status().slot).toBeNull();
    await writeNoise(source);
    const slot = await slotWhen(pipeline, ({ lagBytes }) => isSmall(lagBytes));
    expect(slot).toMatchObject({
      state: 'present',
      reason: null,
      active: true,
      activePid: await walsenderPid(suite.server, pipeline.options.slotName),
      walStatus: 'reserved',
      invalidationReason: null,
      safeWalBytes: null,
      secondsToLoss: null,
      heldBy: null,
    });
    expect(pipeline.status()).toMatchObject({
      role: 'active',
      connected: true,
      lag: { bytes: SMALL, milliseconds: 0 },
    });
    expect(JSON.parse(JSON.stringify(pipeline.status()))).toEqual(
      pipeline.status(),
    );
  });

  it('tells what an old transaction holds from what the consumer has yet to confirm (A17)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline } = capture(source, { target, health: EAGER });
    pipeline.start();
    await pipeline.whenStreaming();
    const pid = await openTransaction(source);
    await writeNoise(source, 20_000);
    const slot = await slotWhen(pipeline, ({ heldBy }) => heldBy !== null);
    expect(slot.heldBy).toMatchObject({
      pid,
      gid: null,
      applicationName: PRINTABLE,
    });
    expect(slot.heldBy?.ageSeconds).toBeGreaterThanOrEqual(10);
    expect(slot.retainedWalBytes).toBeGreaterThan(10_000_000);
    expect(slot.lagBytes).toBeLessThan(1_000_000);
  });

  it('names a prepared transaction, also to a role that may see no statistics of others', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const user = await role(source);
    const { pipeline } = capture(source, {
      target,
      connection: { ...source.connection, user, password: 'x' },
      health: EAGER,
    });
    pipeline.start();
    await pipeline.whenStreaming();
    const pid = await openTransaction(source);
    // Its beginning is hidden, so the pipeline counts from when it saw it first.
    const session = await slotWhen(pipeline, ({ heldBy }) => heldBy !== null);
    expect(session.heldBy).toMatchObject({ pid, gid: null });
    await suite.server.query('select pg_terminate_backend($1, 10000)', [pid]);

    await source.query(
      `begin; insert into t values (-2); prepare transaction 'order-${source.name}'`,
    );
    const prepared = await slotWhen(
      pipeline,
      ({ heldBy }) => heldBy !== null && heldBy.gid !== null,
    );
    expect(prepared.heldBy).toMatchObject({
      pid: null,
      gid: `order-${source.name}`,
      applicationName: null,
    });
  }, 60_000);

  it('shows the lag of a halted pipeline, and that its slot is gone', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline } = capture(source, {
      target,
      health: EAGER,
      apply: async () => {
        throw new Error();
      },
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await haltedFor(pipeline, 'sink_failed');
    await writeNoise(source);
    await slotWhen(pipeline, ({ active }) => active === false);
    const { lag, slot } = pipeline.status();
    expect(lag.bytes).toBe(slot?.lagBytes);
    expect(lag.bytes).toBeGreaterThan(1_000_000);
    expect(lag.milliseconds).toBeGreaterThan(0);

    await pipeline.dropSlot();
    expect(pipeline.status().slot).toBeNull();
    await slotWhen(pipeline, ({ state }) => state === 'missing');
  });

  it('shows the lag of a transaction that is read while it arrives', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const entered = deferred();
    const release = deferred();
    const { pipeline } = capture(source, {
      target,
      health: EAGER,
      apply: async ({ changes }) => {
        for await (const _ of changes) {
          entered.resolve();
          await release.promise;
        }
      },
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query(
      "insert into t select g, repeat('x', 500) from generate_series(1, 20000) g",
    );
    await entered.promise;
    await writeNoise(source, 20_000);
    await slotWhen(pipeline, ({ lagBytes }) => (lagBytes ?? 0) > 5_000_000);
    const { lag, handler } = pipeline.status();
    expect(lag.bytes).toBeGreaterThan(5_000_000);
    expect(lag.milliseconds).toBeGreaterThan(0);
    expect(handler?.runningMilliseconds).toBeGreaterThanOrEqual(
      handler?.idleMilliseconds ?? Infinity,
    );
    release.resolve();
    await pipeline.caughtUp();
    await slotWhen(pipeline, ({ lagBytes }) => isSmall(lagBytes));
    expect(pipeline.status()).toMatchObject({
      handler: null,
      lag: { milliseconds: 0 },
    });
  });
});

describe('a question about the slot', () => {
  it('is asked once at a time, again after a while, and never for a pipeline that does not run', async () => {
    const { source, target } = await sourceAndTarget(suite);
    let connections = 0;
    const { pipeline } = capture(source, {
      target,
      connection: () => {
        connections += 1;
        return source.connection;
      },
      health: { cacheFor: 60_000 },
    });
    await pipeline.checkSlot();
    expect(connections).toBe(0);
    pipeline.start();
    await pipeline.whenStreaming();
    connections = 0;
    await Promise.all([pipeline.checkSlot(), pipeline.checkSlot()]);
    await pipeline.checkSlot();
    expect(connections).toBe(1);
    await pipeline.stop();
    await pipeline.checkSlot();
    expect(connections).toBe(1);
  });

  it('fails quietly and in time, and is not in the way of the stream', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const proxy = await TcpProxy.start(suite.server.connection);
    onTestFinished(() => proxy.close());
    let port = suite.server.connection.port;
    const { pipeline } = capture(source, {
      target,
      connection: () => ({ ...source.connection, port }),
      health: { cacheFor: 1, timeout: 300 },
    });
    pipeline.start();
    await pipeline.whenStreaming();
    const known = await slotWhen(pipeline, ({ state }) => state === 'present');

    port = proxy.port;
    proxy.cut();
    const unknown = await slotWhen(
      pipeline,
      ({ state }) => state !== 'present',
    );
    expect(unknown).toMatchObject({
      state: 'unknown',
      reason: 'no answer in time',
      active: null,
    });
    expect(Date.parse(unknown.checkedAt ?? '')).toBeGreaterThanOrEqual(
      Date.parse(known.checkedAt ?? ''),
    );
    expect(pipeline.state).toBe('streaming');
    await source.query('insert into t values (1)');
    await pipeline.caughtUp(await flushedLsn(source));
  });

  it('ends with a stop', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const proxy = await TcpProxy.start(suite.server.connection);
    onTestFinished(() => proxy.close());
    let port = suite.server.connection.port;
    const { pipeline } = capture(source, {
      target,
      connection: () => ({
        ...source.connection,
        port,
        connectionTimeoutMillis: 60_000,
      }),
      health: { timeout: 60_000 },
    });
    pipeline.start();
    await pipeline.whenStreaming();
    port = proxy.port;
    proxy.cut();
    const asking = pipeline.checkSlot();
    await waitFor(() => proxy.open > 0);
    await pipeline.stop();
    await asking;
    proxy.restore();
    await waitFor(() => proxy.open === 0);
    expect(pipeline.status().slot).toBeNull();
  });

  it('ends with the stop of a pipeline that has halted', async () => {
    const { source, target } = await sourceAndTarget(suite);
    let connections = 0;
    const { pipeline } = capture(source, {
      target,
      publication: 'absent',
      connection: () => {
        connections += 1;
        return source.connection;
      },
      health: EAGER,
    });
    pipeline.start();
    await haltedFor(pipeline, 'publication/missing');
    connections = 0;
    await pipeline.checkSlot();
    expect(connections).toBe(1);
    await pipeline.stop();
    await pipeline.checkSlot();
    expect(connections).toBe(1);
    expect(pipeline.state).toBe('halted');
  });

  it('is not asked with refused credentials while the pipeline tries them itself', async () => {
    const { source, target } = await sourceAndTarget(suite);
    let connections = 0;
    const { pipeline } = capture(source, {
      target,
      connection: () => {
        connections += 1;
        return { ...source.connection, password: 'wrong' };
      },
      health: EAGER,
    });
    pipeline.start();
    await waitFor(() => pipeline.status().attempt > 0);
    await pipeline.checkSlot();
    expect(pipeline.status().slot?.reason).toBe(
      'server error 28P01 (invalid_password)',
    );
    const { attempt } = pipeline.status();
    connections = 0;
    for (let probes = 0; probes < 20; probes++) await pipeline.checkSlot();
    expect(connections).toBe(pipeline.status().attempt - attempt);
  });
});
