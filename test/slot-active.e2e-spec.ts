import { Client } from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { capture, inserted } from './support/capture.js';
import { haltedFor } from './support/halted.js';
import { readSlot, walsenderPid } from './support/logical-slot.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import { TcpProxy } from './support/tcp-proxy.js';
import type { TestDatabase } from './support/test-database.js';
import { deferred, waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '2s' } });

/** A client of another make, which streams from the slot and takes no lock. Gives the process id of its WAL sender. */
async function stranger(
  source: TestDatabase,
  applicationName: string,
): Promise<{ readonly pid: number; readonly leave: () => Promise<void> }> {
  const slotName = `slot_${source.name}`;
  await source.query(
    "select pg_create_logical_replication_slot($1, 'pgoutput')",
    [slotName],
  );
  const config = {
    ...source.connection,
    application_name: applicationName,
    replication: 'database',
  };
  const client = new Client(config);
  client.on('error', () => {});
  await client.connect();
  await client.query('set wal_sender_timeout to 0');
  const streaming = client.query(
    `START_REPLICATION SLOT ${slotName} LOGICAL 0/0 (proto_version '1', publication_names 'p')`,
  );
  streaming.catch(() => {});
  const pid = await walsenderPid(source, slotName);
  const leave = async (): Promise<void> => {
    await source.query('select pg_terminate_backend($1, 5000)', [pid]);
  };
  onTestFinished(leave);
  return { pid, leave };
}

/** Holds what the client says from this command on, while `meanwhile` runs. */
function holdAt(
  proxy: TcpProxy,
  command: string,
  meanwhile: () => Promise<unknown>,
): { readonly done: () => boolean } {
  let done = false;
  proxy.tap = (bytes, direction) => {
    if (direction !== 'client-to-server' || !bytes.includes(command)) return;
    proxy.tap = null;
    proxy.halfOpen('client-to-server');
    void meanwhile().then(() => {
      done = true;
      proxy.restore();
    });
  };
  return { done: () => done };
}

async function proxyOf(source: TestDatabase): Promise<TcpProxy> {
  const proxy = await TcpProxy.start(source.connection);
  onTestFinished(() => proxy.close());
  return proxy;
}

/** How often the server was told to create the slot. */
function creations(slotName: string): number {
  const command = `received replication command: CREATE_REPLICATION_SLOT ${slotName} `;
  return suite.server.log().split(command).length - 1;
}

describe('a slot that another process holds', () => {
  it('is waited for and taken over when that one leaves; the reason says who it is (G05)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const first = capture(source, { target });
    first.pipeline.start();
    await first.pipeline.whenStreaming();
    const pid = await walsenderPid(source, first.pipeline.options.slotName);
    const second = capture(source, { target });
    second.pipeline.start();
    await waitFor(() => second.pipeline.reason);
    expect(second.pipeline.status()).toMatchObject({
      state: 'connecting',
      reason: `the slot is held by process ${pid} of the server, application_name nestjs-replicant test`,
    });
    await source.query('insert into t values (1)');
    await first.pipeline.caughtUp();
    await first.pipeline.stop();
    await second.pipeline.whenStreaming();
    await source.query('insert into t values (2)');
    await second.pipeline.caughtUp();
    expect(inserted(first.applied, 'id')).toEqual([1]);
    expect(inserted(second.applied, 'id')).toEqual([2]);
  });

  it('for twice wal_sender_timeout halts the pipeline and names the holder', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const holder = await stranger(source, 'other\u001b[31m make');
    const { pipeline, applied } = capture(source, {
      target,
      maxCommandRetries: 1,
    });
    const polls: number[] = [];
    pipeline.on('reconnect', ({ delayMilliseconds }) =>
      polls.push(delayMilliseconds),
    );
    const began = performance.now();
    pipeline.start();
    const halt = await haltedFor(pipeline, 'command_error/exhausted');
    expect(performance.now() - began).toBeGreaterThan(4_000);
    expect(halt.detail).toMatch(
      new RegExp(
        `^the slot is held by process ${holder.pid} of the server, application_name other[^\u001b]* make, at \\d attempts within [45678] s$`,
      ),
    );
    for (const delay of polls) {
      expect(delay).toBeGreaterThanOrEqual(1_000);
      expect(delay).toBeLessThanOrEqual(2_000);
    }
    // Nobody took the slot away.
    expect((await readSlot(source, `slot_${source.name}`))?.activePid).toBe(
      holder.pid,
    );
    await holder.leave();
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1]);
  });

  it('is polled at least as often as maxCommandRetries says', async () => {
    const { source, target } = await sourceAndTarget(suite);
    await stranger(source, 'other');
    const { pipeline } = capture(source, { target, maxCommandRetries: 6 });
    let polls = 0;
    pipeline.on('reconnect', () => (polls += 1));
    pipeline.start();
    await haltedFor(pipeline, 'command_error/exhausted');
    expect(polls).toBeGreaterThanOrEqual(6);
  });

  it('halts the pipeline at once with maxCommandRetries: 0', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const holder = await stranger(source, '');
    const { pipeline } = capture(source, { target, maxCommandRetries: 0 });
    let polls = 0;
    pipeline.on('reconnect', () => (polls += 1));
    pipeline.start();
    const halt = await haltedFor(pipeline, 'command_error/exhausted');
    expect(halt.detail).toBe(
      `the slot is held by process ${holder.pid} of the server, at 1 attempt within 0 s`,
    );
    expect(polls).toBe(0);
  });
});

describe('a slot that does not exist', () => {
  it('is created by one of two that start at the same time; the other waits', async () => {
    for (let round = 0; round < 4; round += 1) {
      const { source, target } = await sourceAndTarget(suite);
      const both = [capture(source, { target }), capture(source, { target })];
      for (const { pipeline } of both) pipeline.start();
      const waiting = await waitFor(() => {
        const states = both.map(({ pipeline }) => pipeline.status());
        return states.some(({ state }) => state === 'streaming')
          ? states.find(({ reason }) => reason !== null)
          : null;
      });
      expect(waiting.reason).toMatch(/^the slot is held by /);
      expect(creations(`slot_${source.name}`)).toBe(1);
      const leader = both.find(
        ({ pipeline }) => pipeline.state === 'streaming',
      );
      await source.query('insert into t values (1)');
      await leader?.pipeline.caughtUp();
      await leader?.pipeline.stop();
      const follower = both.find((one) => one !== leader);
      await follower?.pipeline.whenStreaming();
      await source.query('insert into t values (2)');
      await follower?.pipeline.caughtUp();
      expect(inserted(leader?.applied ?? [], 'id')).toEqual([1]);
      expect(inserted(follower?.applied ?? [], 'id')).toEqual([2]);
      await follower?.pipeline.stop();
    }
  }, 60_000);

  it('is left to the instance that has looked for it before, although there is nothing yet on the server', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const slotName = `slot_${source.name}`;
    const proxy = await proxyOf(source);
    const first = capture(source, {
      target,
      connection: { ...source.connection, port: proxy.port },
    });
    const reached = deferred();
    const release = deferred();
    holdAt(proxy, 'CREATE_REPLICATION_SLOT', () => {
      reached.resolve();
      return release.promise;
    });
    first.pipeline.start();
    await reached.promise;
    const second = capture(source, { target });
    second.pipeline.start();
    const reason = await waitFor(() => second.pipeline.reason);
    const [lock] = await source.query<{ pid: number }>(
      "select pid from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())",
    );
    expect(reason).toBe(
      `the slot is held by process ${lock?.pid} of the server, application_name nestjs-replicant test`,
    );
    expect(await readSlot(source, slotName)).toBeNull();
    release.resolve();
    await first.pipeline.whenStreaming();
    expect(second.pipeline.state).toBe('connecting');
    expect(creations(slotName)).toBe(1);
  });

  it('is waited for while another instance still creates it', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const old = await source.connect();
    await old.query('begin; insert into t values (0)');
    const first = capture(source, { target });
    first.pipeline.start();
    const slotName = `slot_${source.name}`;
    const pid = await walsenderPid(source, slotName);
    const second = capture(source, { target });
    second.pipeline.start();
    await waitFor(() =>
      second.pipeline.reason?.includes(`held by process ${pid} `),
    );
    await old.query('commit');
    await first.pipeline.whenStreaming();
    expect(creations(slotName)).toBe(1);
    expect(second.pipeline.state).toBe('connecting');
  });

  it('when it was looked for, but does when it is to be created, is taken at once (42710)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const proxy = await proxyOf(source);
    const { pipeline, applied } = capture(source, {
      target,
      connection: { ...source.connection, port: proxy.port },
      maxCommandRetries: 0,
    });
    const race = holdAt(proxy, 'CREATE_REPLICATION_SLOT', () =>
      source.query(
        "select pg_create_logical_replication_slot($1, 'pgoutput')",
        [pipeline.options.slotName],
      ),
    );
    const reconnects: unknown[] = [];
    pipeline.on('reconnect', (event) => reconnects.push(event));
    pipeline.start();
    await pipeline.whenStreaming();
    expect(race.done()).toBe(true);
    expect(reconnects).toEqual([
      {
        reason: 'server error 42710 (duplicate_object)',
        attempt: 1,
        delayMilliseconds: 0,
      },
    ]);
    await source.query('insert into t values (1)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1]);
  });

  it('when the stream is to begin, but did before, is looked for again (42704)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const proxy = await proxyOf(source);
    const { pipeline } = capture(source, {
      target,
      connection: { ...source.connection, port: proxy.port },
      maxCommandRetries: 0,
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await pipeline.stop();
    const race = holdAt(proxy, 'START_REPLICATION', () =>
      source.query('select pg_drop_replication_slot($1)', [
        pipeline.options.slotName,
      ]),
    );
    const reasons: string[] = [];
    pipeline.on('reconnect', ({ reason }) => reasons.push(reason));
    pipeline.start();
    await haltedFor(pipeline, 'data_gap/slot_missing_with_checkpoint');
    expect(race.done()).toBe(true);
    expect(reasons).toEqual(['server error 42704 (undefined_object)']);
  });
});
