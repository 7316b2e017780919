import { Session } from 'node:inspector/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { capture, inserted } from './support/capture.js';
import {
  readSlot,
  terminateBackend,
  walsenderPid,
} from './support/logical-slot.js';
import { useServer } from './support/suite.js';
import { TcpProxy } from './support/tcp-proxy.js';
import type { TestDatabase } from './support/test-database.js';
import { deferred, waitFor } from './support/wait-for.js';
import { changesOf } from './support/changes-of.js';

const suite = useServer({ settings: { wal_sender_timeout: '2s' } });
/** Where the sink writes, so that a restart of the source does not hit it. */
const other = useServer();

async function databases(): Promise<{
  source: TestDatabase;
  target: TestDatabase;
}> {
  const source = await suite.database();
  const target = await other.database('target');
  await source.query(
    'create table t(id int primary key); create publication p for table t',
  );
  return { source, target };
}

function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index + 1);
}

/** Every backend of the library, and none of the test's own: their pool may hand one out before it knows. */
async function terminateAll(source: TestDatabase): Promise<void> {
  await suite.server.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = $1 and application_name like 'nestjs-replicant%'`,
    [source.name],
  );
}

describe('a lost connection', () => {
  it('in mid-stream is tried again, and later inserts all arrive (G01, 13.2 no. 2)', async () => {
    const { source, target } = await databases();
    const { pipeline, applied, calls } = capture(source, { target });
    const reconnects: unknown[] = [];
    pipeline.on('reconnect', (event) => reconnects.push(event));
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await pipeline.caughtUp();
    await terminateAll(source);
    await waitFor(() => pipeline.state === 'reconnecting');
    expect(pipeline.reason).toBe('server error 57P01 (admin_shutdown)');
    await source.query('insert into t values (2)');
    await waitFor(() => pipeline.state === 'streaming');
    await source.query('insert into t values (3)');
    await pipeline.caughtUp();
    expect(inserted(calls, 'id')).toEqual([1, 2, 3]);
    expect(inserted(applied, 'id')).toEqual([1, 2, 3]);
    expect(reconnects).toMatchObject([
      { reason: 'server error 57P01 (admin_shutdown)', attempt: 1 },
    ]);
    expect(pipeline.status()).toMatchObject({ attempt: 0, nextRetryAt: null });
  });

  it('inside a transaction waits for the sink, and the transaction takes effect once and whole (13.2 no. 4)', async () => {
    const { source, target } = await databases();
    const reached = deferred();
    const release = deferred();
    const { pipeline, applied, calls, checkpoints } = capture(source, {
      target,
      apply: async (transaction) => {
        if (changesOf(transaction).length < 5_000) return;
        reached.resolve();
        await release.promise;
      },
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (0)');
    await pipeline.caughtUp();
    const control = applied[0]?.commitLsn;
    await source.query('insert into t select generate_series(1, 5000)');
    await reached.promise;
    await terminateAll(source);
    await waitFor(() => pipeline.state === 'reconnecting');
    // Longer than the delay before the first attempt.
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    const slot = await readSlot(suite.server, pipeline.options.slotName);
    expect(slot?.active).toBe(false);
    expect((await checkpoints.load())?.commitLsn).toBe(control);
    expect(applied).toHaveLength(1);
    release.resolve();
    await waitFor(() => pipeline.state === 'streaming');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([0, ...upTo(5_000)]);
    // It became durable after all, so it did not come again.
    expect(calls).toHaveLength(2);
  });

  it('in an idle time costs nothing: rows before and after arrive once (13.2 no. 5)', async () => {
    const { source, target } = await databases();
    const { pipeline, applied, calls } = capture(source, { target });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await pipeline.caughtUp();
    // Idle: the server has told a position beyond the transaction, and it was confirmed.
    const end = applied[0]?.commitEndLsn ?? 0n;
    await source.query('create table unpublished(id int)');
    await waitFor(async () => {
      const slot = await readSlot(suite.server, pipeline.options.slotName);
      return (slot?.confirmedFlushLsn ?? 0n) > end;
    });
    await terminateAll(source);
    await waitFor(() => pipeline.state === 'reconnecting');
    await source.query('insert into t values (2)');
    await waitFor(() => pipeline.state === 'streaming');
    await pipeline.caughtUp();
    expect(inserted(calls, 'id')).toEqual([1, 2]);
  });

  it('while it connects is tried again (G01)', async () => {
    const { source, target } = await databases();
    const proxy = await TcpProxy.start(suite.server.connection);
    onTestFinished(() => proxy.close());
    const { pipeline, applied } = capture(source, {
      target,
      connection: { ...source.connection, port: proxy.port },
    });
    let cuts = 0;
    proxy.tap = (bytes, direction) => {
      const commands = [
        'IDENTIFY_SYSTEM',
        'pg_publication',
        'START_REPLICATION',
      ];
      const command = commands[cuts];
      if (
        command !== undefined &&
        direction === 'client-to-server' &&
        bytes.includes(command)
      ) {
        cuts += 1;
        proxy.reset();
      }
    };
    pipeline.start();
    await waitFor(() => pipeline.state === 'streaming', { timeout: 20_000 });
    expect(cuts).toBe(3);
    await source.query('insert into t values (1)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1]);
  });

  it('many times over leaves no listener, timer or memory behind, and each row arrives once (D04)', async () => {
    const { source, target } = await databases();
    const { pipeline, applied, calls } = capture(source, { target });
    const rounds = 50;
    // The shortest delay that the jitter allows.
    vi.spyOn(Math, 'random').mockReturnValue(0);
    onTestFinished(() => void vi.restoreAllMocks());
    const warnings: string[] = [];
    const warn = (warning: Error): void => void warnings.push(warning.name);
    process.on('warning', warn);
    onTestFinished(() => void process.off('warning', warn));
    pipeline.start();
    await pipeline.whenStreaming();
    const before = { handles: handles(), heap: await heapAfterGc() };
    for (let round = 1; round <= rounds; round += 1) {
      await source.query('insert into t values ($1)', [round]);
      const pid = await walsenderPid(source, pipeline.options.slotName);
      await terminateBackend(source, pid);
      await waitFor(async () => {
        const slot = await readSlot(source, pipeline.options.slotName);
        return slot?.activePid !== null && slot?.activePid !== pid;
      });
      await waitFor(() => pipeline.state === 'streaming');
    }
    await pipeline.caughtUp();
    expect(inserted(calls, 'id')).toEqual(upTo(rounds));
    expect(applied).toHaveLength(rounds);
    await waitFor(() => handles() <= before.handles + 5, {
      message: 'sockets and timers to go',
    });
    expect((await heapAfterGc()) - before.heap).toBeLessThan(8_000_000);
    expect(warnings).toEqual([]);
  }, 120_000);
});

describe('a restarted server', () => {
  it('is streamed from again within 5 seconds, and nothing is lost or doubled (G02, G09)', async () => {
    const { source, target } = await databases();
    const { pipeline, applied } = capture(source, { target });
    pipeline.start();
    await pipeline.whenStreaming();
    let id = 0;
    for (const mode of ['immediate', 'fast', 'immediate'] as const) {
      await source.query('insert into t values ($1)', [(id += 1)]);
      await suite.server.stop(mode);
      await waitFor(() => pipeline.state === 'reconnecting');
      await waitFor(() => pipeline.status().attempt >= 2);
      expect(pipeline.status().nextRetryAt).not.toBeNull();
      expect(pipeline.reason).toMatch(/ECONNREFUSED|57P0/);
      await suite.server.startAgain();
      await waitFor(() => pipeline.state === 'streaming', { timeout: 5_000 });
      await source.query('insert into t values ($1)', [(id += 1)]);
      await pipeline.caughtUp();
    }
    expect(inserted(applied, 'id')).toEqual(upTo(6));
  }, 60_000);

  it('may come up after the pipeline has started (G09)', async () => {
    const { source, target } = await databases();
    const { pipeline, applied } = capture(source, { target });
    await suite.server.stop();
    pipeline.start();
    await waitFor(() => pipeline.status().attempt >= 2);
    expect(pipeline.status()).toMatchObject({
      state: 'connecting',
      reason: 'connection lost (ECONNREFUSED)',
    });
    await suite.server.startAgain();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1]);
  }, 60_000);

  it('is tried with growing delays, and anew after frames have flowed (G10)', async () => {
    const { source, target } = await databases();
    const { pipeline } = capture(source, { target });
    const delays: { attempt: number; delay: number }[] = [];
    pipeline.on('reconnect', ({ attempt, delayMilliseconds }) =>
      delays.push({ attempt, delay: delayMilliseconds }),
    );
    await suite.server.stop();
    pipeline.start();
    await waitFor(() => delays.length === 4);
    await suite.server.startAgain();
    for (const [index, { attempt, delay }] of delays.entries()) {
      const longest = 500 * 2 ** index;
      expect(attempt).toBe(index + 1);
      expect(delay).toBeGreaterThanOrEqual(longest / 2);
      expect(delay).toBeLessThanOrEqual(longest);
    }
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await pipeline.caughtUp();
    const seen = delays.length;
    await terminateAll(source);
    await waitFor(() => delays.length > seen);
    expect(delays[seen]?.attempt).toBe(1);
    await waitFor(() => pipeline.state === 'streaming');
  }, 60_000);
});

describe('a slot that another process streams from', () => {
  it('is waited for, also when that process is cut off without a word (G05)', async () => {
    const { source, target } = await databases();
    const proxy = await TcpProxy.start(suite.server.connection);
    onTestFinished(() => proxy.close());
    const first = capture(source, {
      target,
      connection: { ...source.connection, port: proxy.port },
    });
    first.pipeline.start();
    await first.pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await first.pipeline.caughtUp();
    const pid = await walsenderPid(
      suite.server,
      first.pipeline.options.slotName,
    );
    proxy.cut();
    const second = capture(source, { target });
    second.pipeline.start();
    await waitFor(() =>
      second.pipeline.reason?.includes(`held by process ${pid} `),
    );
    expect(second.pipeline.state).toBe('connecting');
    await source.query('insert into t values (2)');
    await second.pipeline.whenStreaming();
    await second.pipeline.caughtUp();
    expect(
      await walsenderPid(suite.server, second.pipeline.options.slotName),
    ).not.toBe(pid);
    expect(inserted(first.applied, 'id')).toEqual([1]);
    expect(inserted(second.applied, 'id')).toEqual([2]);
    // The slot was never taken away from a session that lives.
    expect(second.pipeline.halt).toBeNull();
  }, 60_000);
});

/** Sockets and timers that keep the process alive or may wake it. */
function handles(): number {
  return process
    .getActiveResourcesInfo()
    .filter((name) => name === 'TCPSocketWrap' || name === 'Timeout').length;
}

/** Bytes of the heap when all garbage is gone. */
async function heapAfterGc(): Promise<number> {
  const session = new Session();
  session.connect();
  await session.post('HeapProfiler.collectGarbage');
  session.disconnect();
  return process.memoryUsage().heapUsed;
}
