import { describe, expect, it, onTestFinished } from 'vitest';
import { capture, inserted } from './support/capture.js';
import { copying } from './support/copying.js';
import { walsenderPid } from './support/logical-slot.js';
import {
  StatusUpdateReader,
  type StatusUpdate,
} from './support/status-updates.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import { TcpProxy } from './support/tcp-proxy.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

const TIMEOUT_MS = 1_000;
const suite = useServer({
  settings: { wal_sender_timeout: `${TIMEOUT_MS}ms` },
});

/** Sets the timeout for sessions of the source's database. */
async function patience(source: TestDatabase, value: string): Promise<void> {
  await source.query(
    `alter database "${source.name}" set wal_sender_timeout = '${value}'`,
  );
}

async function proxied(): Promise<TcpProxy> {
  const proxy = await TcpProxy.start(suite.server.connection);
  onTestFinished(() => proxy.close());
  return proxy;
}

describe('a server that falls silent', () => {
  it('is asked for an answer after twice its timeout, then dropped, and the pipeline reconnects (C05, G07)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const proxy = await proxied();
    const reader = new StatusUpdateReader();
    const updates: StatusUpdate[] = [];
    // The first connection is the stream.
    proxy.tap = (bytes, direction, number) => {
      if (number === 1 && direction === 'client-to-server')
        updates.push(...reader.read(bytes));
    };
    const reasons: string[] = [];
    const { pipeline, applied } = capture(source, {
      target,
      connection: { ...source.connection, port: proxy.port },
    });
    pipeline.on('reconnect', ({ reason }) => reasons.push(reason));
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await pipeline.caughtUp();

    const began = performance.now();
    proxy.halfOpen('server-to-client');
    await source.query('insert into t values (2)');
    await waitFor(() => pipeline.state === 'reconnecting');
    const took = performance.now() - began;
    const asked = updates.filter(({ replyRequested }) => replyRequested);
    expect(asked).toHaveLength(1);
    expect((asked[0]?.at ?? 0) - began).toBeGreaterThan(TIMEOUT_MS * 1.4);
    expect(took).toBeGreaterThan(TIMEOUT_MS * 2);
    expect(took).toBeLessThan(TIMEOUT_MS * 7);
    expect(pipeline.reason).toBe('the server has fallen silent');
    expect(pipeline.status().state).toBe('reconnecting');

    proxy.reset();
    proxy.restore();
    await waitFor(() => pipeline.state === 'streaming', { timeout: 20_000 });
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1, 2]);
    expect(reasons[0]).toBe('the server has fallen silent');
  }, 60_000);

  it('is left alone while it is merely idle', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline } = capture(source, { target });
    pipeline.start();
    await pipeline.whenStreaming();
    const pid = await walsenderPid(suite.server, pipeline.options.slotName);
    await new Promise((resolve) => setTimeout(resolve, TIMEOUT_MS * 4));
    expect(pipeline.state).toBe('streaming');
    expect(await walsenderPid(suite.server, pipeline.options.slotName)).toBe(
      pid,
    );
  });
});

describe('the session that has made the slot', () => {
  it('is known to be lost while rows are copied, and the copy begins anew', async () => {
    const { source, target } = await sourceAndTarget(
      suite,
      `create table t(id int primary key); create publication p for table t;
       insert into t select generate_series(1, 10)`,
    );
    await target.query('create table t(id int primary key)');
    const proxy = await proxied();
    let calls = 0;
    const { pipeline, copied } = copying(source, {
      target,
      connection: { ...source.connection, port: proxy.port },
      beforeRows: async () => {
        calls += 1;
        if (calls > 1) return;
        proxy.halfOpen('server-to-client');
        // The socket was closed on this side.
        await waitFor(
          async () => {
            const rows = await source.query(
              "select from pg_stat_activity where backend_type = 'walsender' and datname = current_database()",
            );
            return rows.length === 0;
          },
          { timeout: TIMEOUT_MS * 10, message: 'the session to be cut' },
        );
        proxy.reset();
        proxy.restore();
      },
    });
    const reasons: string[] = [];
    pipeline.on('reconnect', ({ reason }) => reasons.push(reason));
    pipeline.start();
    await pipeline.whenStreaming();
    expect(reasons[0]).toBe('the replication connection was lost');
    const whole = { rows: { length: 10 }, context: { firstForTable: true } };
    expect(copied).toMatchObject([whole, whole]);
  }, 60_000);
});

describe('a server without a timeout', () => {
  it('is streamed from like any other, with a status every ten seconds and no spinning (C07)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    await patience(source, '0');
    const proxy = await proxied();
    const reader = new StatusUpdateReader();
    let updates = 0;
    proxy.tap = (bytes, direction, number) => {
      if (number === 1 && direction === 'client-to-server')
        updates += reader.read(bytes).length;
    };
    const { pipeline, applied } = capture(source, {
      target,
      connection: { ...source.connection, port: proxy.port },
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1]);
    const before = updates;
    await new Promise((resolve) => setTimeout(resolve, TIMEOUT_MS * 3));
    // At most what is still due from the insert: no more than one for the position, one for the interval.
    expect(updates - before).toBeLessThanOrEqual(2);
    expect(pipeline.state).toBe('streaming');
  });
});

describe('a handler that blocks the process', () => {
  it('for longer than the timeout costs at most one reconnect, and nothing is lost or doubled', async () => {
    const { source, target } = await sourceAndTarget(suite);
    let block = true;
    let reconnects = 0;
    const { pipeline, applied } = capture(source, {
      target,
      apply: async () => {
        if (!block) return;
        block = false;
        const end = performance.now() + TIMEOUT_MS * 3.5;
        while (performance.now() < end);
      },
    });
    pipeline.on('reconnect', () => (reconnects += 1));
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query(
      'do $$ begin for i in 1..20 loop insert into t values (i); commit; end loop; end $$',
    );
    await waitFor(() => applied.length === 20);
    await source.query('insert into t values (21)');
    await waitFor(() => pipeline.state === 'streaming');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual(
      Array.from({ length: 21 }, (_, index) => index + 1),
    );
    expect(reconnects).toBeLessThanOrEqual(1);
  });
});
