import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { formatLsn } from '../lib/engine/model/lsn.js';
import { PipelineStateError } from '../lib/engine/pipeline/state-error.js';
import { capture, inserted } from './support/capture.js';
import { freePort } from './support/free-port.js';
import {
  confirmedUpTo,
  currentLsn,
  readSlot,
  terminateBackend,
  walsenderPid,
} from './support/logical-slot.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { deferred, waitFor } from './support/wait-for.js';

const suite = useServer();

/** A source with the table `t(id)` in publication `p`, and a target. */
/** Inserts ids in a transaction each. */
async function insertEach(
  source: TestDatabase,
  ids: readonly number[],
): Promise<void> {
  for (const id of ids) await source.query('insert into t values ($1)', [id]);
}

describe('stopping a pipeline', () => {
  it('confirms what is durable, frees the slot, and nothing comes again after a clean stop (A07, F02)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline, calls } = capture(source, { target });
    const slot = pipeline.options.slotName;
    for (const round of [1, 2, 3]) {
      pipeline.start();
      await pipeline.whenStreaming();
      await source.query('insert into t values ($1)', [round]);
      await waitFor(() => calls.length === round);
      await pipeline.stop();
      const end = calls.at(-1)?.commitEndLsn;
      const stopped = await readSlot(suite.server, slot);
      expect(stopped?.active).toBe(false);
      expect(stopped?.confirmedFlushLsn).toBeGreaterThanOrEqual(end ?? 0n);
      expect(pipeline.state).toBe('stopped');
    }
    expect(inserted(calls, 'id')).toEqual([1, 2, 3]);
  });

  it('lets the running delivery end, begins no other, and confirms it (F02)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const release = deferred();
    const { pipeline, calls, applied } = capture(source, {
      target,
      apply: () => release.promise,
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await insertEach(source, [1, 2, 3]);
    await waitFor(() => calls.length === 1);
    const stopping = pipeline.stop();
    expect(pipeline.state).toBe('draining');
    release.resolve();
    await stopping;
    expect(inserted(calls, 'id')).toEqual([1]);
    expect(inserted(applied, 'id')).toEqual([1]);
    const slot = await readSlot(suite.server, pipeline.options.slotName);
    expect(slot?.active).toBe(false);
    expect(slot?.confirmedFlushLsn).toBe(applied[0]?.commitEndLsn);

    pipeline.start();
    await pipeline.caughtUp();
    expect(inserted(calls, 'id')).toEqual([1, 2, 3]);
  });

  it('confirms nothing that was received and dropped while it drained', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const release = deferred();
    const { pipeline, calls } = capture(source, {
      target,
      apply: () => release.promise,
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await insertEach(source, [1]);
    await waitFor(() => calls.length === 1);
    const stopping = pipeline.stop();
    // Sent to a pipeline that takes in nothing any more. Keepalives beyond them follow, and the server asks for answers.
    await insertEach(source, [2, 3]);
    const beyond = await currentLsn(source);
    await waitFor(async () => {
      const [row] = await suite.server.query<{ sent: boolean }>(
        'select bool_and(sent_lsn >= $1::text::pg_lsn) as sent from pg_stat_replication',
        [formatLsn(beyond)],
      );
      return row?.sent;
    });
    release.resolve();
    await stopping;
    const slot = await readSlot(suite.server, pipeline.options.slotName);
    expect(slot?.confirmedFlushLsn).toBeLessThan(beyond);

    pipeline.start();
    await pipeline.caughtUp();
    expect(inserted(calls, 'id')).toEqual([1, 2, 3]);
  });

  it('may be asked many times at once, before the start and after the end (F04)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline } = capture(source, { target });
    const states: string[] = [];
    pipeline.on('state', ({ to }) => states.push(to));
    await pipeline.stop();
    pipeline.start();
    await pipeline.whenStreaming();
    await Promise.all([pipeline.stop(), pipeline.stop(), pipeline.stop()]);
    await pipeline.stop();
    expect(states).toEqual(['connecting', 'streaming', 'draining', 'stopped']);
  });

  it('says once that the delivery it waited for failed, however often it was asked', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const release = deferred();
    const { pipeline, calls } = capture(source, {
      target,
      async apply() {
        await release.promise;
        throw new Error('the sink is broken');
      },
    });
    const warnings: string[] = [];
    pipeline.on('warning', ({ message }) => warnings.push(message));
    pipeline.start();
    await pipeline.whenStreaming();
    await insertEach(source, [1]);
    await waitFor(() => calls.length === 1);
    const stops = [pipeline.stop(), pipeline.stop(), pipeline.stop()];
    release.resolve();
    await Promise.all(stops);
    expect(warnings).toEqual([
      expect.stringContaining('the delivery that ran while stopping failed'),
    ]);
    expect(pipeline.state).toBe('stopped');
  });

  it('ends at once while it connects to a server that accepts and never answers, and leaves nothing open (F04, F07)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { port, sockets } = await silentServer();
    const { pipeline } = capture(source, {
      target,
      connection: { ...source.connection, port },
    });
    pipeline.start();
    await waitFor(() => sockets.length === 1);
    const [socket] = sockets;
    const closed = new Promise((resolve) => socket?.once('close', resolve));
    socket?.resume();
    const began = performance.now();
    await pipeline.stop();
    expect(performance.now() - began).toBeLessThan(1_000);
    await closed;
    expect(pipeline.state).toBe('stopped');
    expect(sockets).toHaveLength(1);
  });

  it('ends while it waits for the next attempt', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline } = capture(source, {
      target,
      connection: { ...source.connection, port: await freePort() },
    });
    pipeline.start();
    await waitFor(() => pipeline.status().attempt === 2);
    const began = performance.now();
    await pipeline.stop();
    expect(performance.now() - began).toBeLessThan(400);
    expect(pipeline.status()).toMatchObject({
      state: 'stopped',
      attempt: 0,
      nextRetryAt: null,
    });
  });

  it('ends within drainTimeout with a sink that never settles, and the transaction comes again', async () => {
    const { source, target } = await sourceAndTarget(suite);
    let hang = true;
    const unsettled = deferred();
    const { pipeline, calls, applied } = capture(source, {
      target,
      drainTimeout: 300,
      apply: () => (hang ? unsettled.promise : Promise.resolve()),
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await insertEach(source, [1]);
    await waitFor(() => calls.length === 1);
    const began = performance.now();
    await pipeline.stop();
    const took = performance.now() - began;
    expect(took).toBeGreaterThanOrEqual(299);
    expect(took).toBeLessThan(2_000);
    await waitFor(
      async () =>
        (await readSlot(suite.server, pipeline.options.slotName))?.active ===
        false,
    );

    hang = false;
    unsettled.reject(new Error('given up'));
    pipeline.start();
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1]);
    expect(calls).toHaveLength(2);
  });

  it('ends also when the connection was lost while a sink never settles', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const reconnects: string[] = [];
    const { pipeline, calls } = capture(source, {
      target,
      drainTimeout: 300,
      apply: () => new Promise(() => {}),
    });
    pipeline.on('reconnect', ({ reason }) => reconnects.push(reason));
    pipeline.start();
    await pipeline.whenStreaming();
    await insertEach(source, [1]);
    await waitFor(() => calls.length === 1);
    const pid = await walsenderPid(suite.server, pipeline.options.slotName);
    await terminateBackend(suite.server, pid);
    await waitFor(() => pipeline.state === 'reconnecting');
    const began = performance.now();
    await pipeline.stop();
    expect(performance.now() - began).toBeLessThan(2_000);
    expect(pipeline.state).toBe('stopped');
    // Nobody is told that it tries again, since it does not.
    expect(reconnects).toEqual([]);
  });

  it('does not wait for the handler that calls it, whose work still becomes durable', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const returned = deferred<string>();
    const { pipeline, applied, calls } = capture(source, {
      target,
      apply: async () => {
        await pipeline.stop();
        returned.resolve(pipeline.state);
      },
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await insertEach(source, [1, 2]);
    expect(await returned.promise).toBe('draining');
    await waitFor(() => pipeline.state === 'stopped');
    expect(inserted(calls, 'id')).toEqual([1]);
    await confirmedUpTo(
      suite.server,
      pipeline.options.slotName,
      applied[0]?.commitEndLsn ?? 0n,
    );
  });

  it('stops before the second transaction when the first handler after a start calls it', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline, applied, calls } = capture(source, {
      target,
      apply: async () => {
        await pipeline.stop();
      },
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await insertEach(source, [1]);
    await waitFor(() => pipeline.state === 'stopped');
    await source.query(
      'do $$ begin for i in 2..200 loop insert into t values (i); commit; end loop; end $$',
    );
    pipeline.start();
    await waitFor(() => pipeline.state === 'stopped');
    expect(inserted(calls, 'id')).toEqual([1, 2]);
    expect(inserted(applied, 'id')).toEqual([1, 2]);
  });

  it('leaves no timer and no socket behind, whatever it was doing (F07)', async () => {
    const { source } = await sourceAndTarget(suite);
    const writer = await source.connect();
    const read = async (): Promise<null> => null;
    const checkpoint = { kind: 'reader', read } as const;
    const { pipeline, applied } = capture(source, {
      target: source,
      checkpoint,
    });
    const silent = await silentServer();
    const before = await openResources();
    pipeline.start();
    await pipeline.whenStreaming();
    await writer.query('insert into t values (1)');
    await waitFor(() => applied.length === 1);
    await pipeline.stop();
    expect(await openResources()).toEqual(before);

    for (const port of [await freePort(), silent.port]) {
      const connecting = capture(source, {
        target: source,
        checkpoint,
        connection: { ...source.connection, port },
      }).pipeline;
      connecting.start();
      await waitFor(
        () => connecting.status().attempt > 0 || silent.sockets.length > 0,
      );
      await connecting.stop();
      for (const socket of silent.sockets.splice(0)) socket.destroy();
      expect(await openResources()).toEqual(before);
    }
  });

  it('reports nothing unusual when it is asked to stop (F06)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline } = capture(source, { target });
    const reports: unknown[] = [];
    const logged = suite.server.log().length;
    pipeline.on('warning', (event) => reports.push(event));
    pipeline.on('halt', (event) => reports.push(event));
    pipeline.on('reconnect', (event) => reports.push(event));
    for (const round of [1, 2, 3, 4, 5]) {
      pipeline.start();
      await pipeline.whenStreaming();
      await insertEach(source, [round]);
      await pipeline.stop();
    }
    expect(reports).toEqual([]);
    const complaints = suite.server
      .log()
      .slice(logged)
      .match(/unexpected EOF|could not (send|receive) data/);
    expect(complaints).toBeNull();
  });
});

describe('starting again', () => {
  it('waits for the stop that was asked for before', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const states: string[] = [];
    const { pipeline, calls } = capture(source, { target });
    pipeline.start();
    await pipeline.whenStreaming();
    pipeline.on('state', ({ to }) => states.push(to));
    const stopping = pipeline.stop();
    pipeline.start();
    await pipeline.whenStreaming();
    await stopping;
    expect(states).toEqual(['draining', 'stopped', 'connecting', 'streaming']);
    await insertEach(source, [1]);
    await pipeline.caughtUp();
    expect(inserted(calls, 'id')).toEqual([1]);
  });

  it('does not happen when a stop was asked for later', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline } = capture(source, { target });
    pipeline.start();
    await pipeline.whenStreaming();
    const first = pipeline.stop();
    pipeline.start();
    const waiting = pipeline.whenStreaming();
    const second = pipeline.stop();
    await expect(waiting).rejects.toBeInstanceOf(PipelineStateError);
    await Promise.all([first, second]);
    expect(pipeline.state).toBe('stopped');
    expect(
      (await readSlot(suite.server, pipeline.options.slotName))?.active,
    ).toBe(false);
  });

  it('reads no checkpoint before the delivery of the earlier start has settled', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const release = deferred();
    const { pipeline, applied, calls, checkpoints } = capture(source, {
      target,
      drainTimeout: 100,
      apply: () => (calls.length === 1 ? release.promise : Promise.resolve()),
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await insertEach(source, [1, 2]);
    await waitFor(() => calls.length === 1);
    await pipeline.stop();

    let loads = 0;
    const load = checkpoints.load.bind(checkpoints);
    checkpoints.load = () => {
      loads += 1;
      return load();
    };
    pipeline.start();
    const pause = new Promise((resolve) => setTimeout(resolve, 200));
    await Promise.race([pause, pipeline.whenStreaming()]);
    expect(loads).toBe(0);
    expect(pipeline.state).toBe('connecting');
    release.resolve();
    await pipeline.whenStreaming();
    await pipeline.caughtUp();
    expect(loads).toBeGreaterThan(0);
    // The first transaction became durable after all, so it did not come again.
    expect(inserted(calls, 'id')).toEqual([1, 2]);
    expect(inserted(applied, 'id')).toEqual([1, 2]);
  });
});

/** A server that accepts and never answers. */
async function silentServer(): Promise<{ port: number; sockets: Socket[] }> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => sockets.push(socket));
  const port = await freePort();
  await once(server.listen(port, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port, sockets };
}

/** What keeps this process alive, once what was closed has been reaped. */
async function openResources(): Promise<string[]> {
  await new Promise((resolve) => setTimeout(resolve, 50));
  return process
    .getActiveResourcesInfo()
    .filter((name) => name === 'TCPSocketWrap' || name === 'Timeout')
    .toSorted();
}
