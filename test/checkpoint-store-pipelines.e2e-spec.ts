import { describe, expect, it, onTestFinished } from 'vitest';
import type { Lsn } from '../lib/engine/model/lsn.js';
import { changesOf } from './support/changes-of.js';
import { inserted } from './support/capture.js';
import { refuseCommits, sessionsNamed } from './support/checkpoint-stores.js';
import { haltedFor } from './support/halted.js';
import { lifeline } from './support/killed-client.js';
import {
  libraryCapture,
  streamingAfterOne,
} from './support/library-capture.js';
import { confirmedUpTo } from './support/logical-slot.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import { TcpProxy } from './support/tcp-proxy.js';
import type { TestDatabase } from './support/test-database.js';
import { deferred, waitFor } from './support/wait-for.js';

const suite = useServer();
const elsewhere = useServer();

const SESSION = 'nestjs-replicant test';

function stored(target: TestDatabase): Promise<unknown[]> {
  return target.query(
    'select slot_name, commit_lsn, confirmed_lsn from replicant_checkpoints order by slot_name',
  );
}

describe('a pipeline whose checkpoint the library keeps', () => {
  it('goes on from it after a clean stop, and nothing comes again; deletes move it too', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const first = libraryCapture(source, target);
    first.pipeline.start();
    await first.pipeline.whenStreaming();
    await source.query('insert into t values (1), (2)');
    await first.pipeline.caughtUp();
    const before = await stored(target);
    await source.query('delete from t where id = 1');
    await first.pipeline.caughtUp();
    expect(await stored(target)).not.toEqual(before);
    await first.pipeline.stop();

    const second = libraryCapture(source, target);
    await source.query('insert into t values (3)');
    second.pipeline.start();
    await second.pipeline.whenStreaming();
    await second.pipeline.caughtUp();
    expect(second.calls.flatMap(changesOf)).toHaveLength(1);
    expect(inserted(second.calls, 'id')).toEqual([3]);
  });

  it('may keep it in another cluster than source and sink', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const store = await elsewhere.database('store');
    const { pipeline, calls } = libraryCapture(source, store);
    await target.query('create table copy(id int)');
    await streamingAfterOne(pipeline, source);
    const [server] = await source.query<{ id: string }>(
      'select system_identifier::text as id from pg_control_system()',
    );
    expect(
      await store.query('select system_identifier from replicant_checkpoints'),
    ).toEqual([{ system_identifier: server?.id }]);
    await pipeline.stop();
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (2)');
    await pipeline.caughtUp();
    expect(inserted(calls, 'id')).toEqual([1, 2]);
  });

  it('shares the table with another pipeline', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const names = [`one_${source.name}`, `two_${source.name}`];
    const pipelines = names.map((slotName) =>
      libraryCapture(source, target, {}, { slotName }),
    );
    for (const { pipeline } of pipelines) {
      pipeline.start();
      await pipeline.whenStreaming();
    }
    await source.query('insert into t values (1)');
    for (const { pipeline, calls } of pipelines) {
      await pipeline.caughtUp();
      expect(inserted(calls, 'id')).toEqual([1]);
    }
    expect(await stored(target)).toMatchObject(
      names.map((slot_name) => ({ slot_name })),
    );
  });

  it('confirms a transaction as soon as it is stored, and not with the next position', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline } = libraryCapture(source, target);
    pipeline.start();
    await pipeline.whenStreaming();
    const commits: Lsn[] = [];
    pipeline.on('delivered', ({ commitLsn }) => commits.push(commitLsn));
    await source.query('insert into t values (1)');
    const commitLsn = await waitFor(() => commits[0]);
    // Positions without a transaction are stored every ten seconds. The end of a commit is behind its beginning.
    await confirmedUpTo(source, `slot_${source.name}`, commitLsn + 1n, {
      timeout: 5_000,
    });
  });

  it('is not taken for half done when a handler resolves without the rest: all of it comes again', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const line = await lifeline(source);
    const seen: number[] = [];
    const { pipeline } = libraryCapture(
      source,
      target,
      {},
      {
        connection: line.connection,
        maxInflightBytes: 64 * 1024,
        async apply({ changes }) {
          let rows = 0;
          try {
            for await (const _ of changes) {
              rows += 1;
              if (rows === 10 && seen.length === 0) line.proxy.reset();
            }
          } catch {
            // A sink that takes what it has for all there is.
          }
          seen.push(rows);
        },
      },
    );
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query(
      "insert into t select g, repeat('x', 1000) from generate_series(1, 20000) g",
    );
    await waitFor(() => seen.length === 2);
    await pipeline.caughtUp();
    expect(seen[0]).toBeLessThan(20_000);
    expect(seen.slice(1)).toEqual([20_000]);
    expect(pipeline.halt).toBeNull();
  });

  it('takes a write whose answer was lost for written: nothing comes again', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const proxy = await TcpProxy.start(target.connection);
    onTestFinished(() => proxy.close());
    const { host, port } = proxy;
    const { pipeline, calls, retries } = libraryCapture(source, target, {
      connection: { ...target.connection, host, port },
    });
    const reasons: string[] = [];
    pipeline.on('reconnect', ({ reason }) => reasons.push(reason));
    await streamingAfterOne(pipeline, source);
    const before = await stored(target);
    proxy.halfOpen('server-to-client');
    await source.query('insert into t values (2)');
    await waitFor(
      async () =>
        JSON.stringify(await stored(target)) !== JSON.stringify(before),
    );
    proxy.restore();
    proxy.reset();
    await source.query('insert into t values (3)');
    await pipeline.caughtUp();
    expect(inserted(calls, 'id')).toEqual([1, 2, 3]);
    expect(retries).toHaveLength(1);
    expect(reasons).toEqual([]);
  });

  it('does not overwrite a row that was moved under it, reads it anew and goes on from there', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const release = deferred();
    const { pipeline, calls, retries } = libraryCapture(
      source,
      target,
      {},
      {
        apply: async (transaction) => {
          if (inserted([transaction], 'id').includes(2) && calls.length === 2)
            await release.promise;
        },
      },
    );
    const reasons: string[] = [];
    pipeline.on('reconnect', ({ reason }) => reasons.push(reason));
    await streamingAfterOne(pipeline, source);
    await source.query('insert into t values (2)');
    await waitFor(() => calls.length === 2);
    // Another process has got one byte further.
    await target.query(
      'update replicant_checkpoints set confirmed_lsn = confirmed_lsn + 1',
    );
    const moved = await stored(target);
    release.resolve();
    await waitFor(() => reasons.length > 0);
    expect(reasons).toEqual([
      'another process has written the checkpoint of this slot',
    ]);
    await pipeline.caughtUp();
    expect(inserted(calls, 'id')).toEqual([1, 2, 2]);
    expect(retries).toEqual([]);
    expect(await stored(target)).not.toEqual(moved);
  });

  it('does not bring back a row that an operator has removed while a handler ran', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const release = deferred();
    const { pipeline, calls } = libraryCapture(
      source,
      target,
      {},
      {
        apply: async () => {
          if (calls.length === 2) await release.promise;
        },
      },
    );
    await streamingAfterOne(pipeline, source);
    await source.query('insert into t values (2)');
    await waitFor(() => calls.length === 2);
    await target.query('delete from replicant_checkpoints');
    const reconnected = new Promise((resolve) => {
      pipeline.on('reconnect', resolve);
    });
    release.resolve();
    await reconnected;
    await pipeline.caughtUp();
    // Without a row the slot tells where to go on.
    expect(inserted(calls, 'id')).toEqual([1, 2, 2]);
    expect(await stored(target)).toHaveLength(1);
  });

  it.each(['all tables', 'table t, replicant_checkpoints'])(
    'halts when its own table is published for %s',
    async (published) => {
      const source = await suite.database();
      await source.query('create table t(id int primary key)');
      const first = libraryCapture(source, source);
      await source.query('create publication p for table t');
      first.pipeline.start();
      await first.pipeline.whenStreaming();
      await first.pipeline.stop();
      await source.query(
        `drop publication p; create publication p for ${published}`,
      );
      const { pipeline } = libraryCapture(source, source);
      pipeline.start();
      const halt = await haltedFor(pipeline, 'preflight/self_feeding');
      expect(halt.detail).toContain('public.replicant_checkpoints');
      await waitFor(
        async () => (await sessionsNamed(source, SESSION)).length === 0,
      );
    },
  );
});

/** A pipeline whose handler holds the first transaction until it is released. */
async function heldAtFirst(options: { readonly drainTimeout?: number } = {}) {
  const { source, target } = await sourceAndTarget(suite);
  const release = deferred();
  onTestFinished(() => release.resolve());
  const { pipeline, calls } = libraryCapture(
    source,
    target,
    {},
    { ...options, apply: () => release.promise },
  );
  pipeline.start();
  await pipeline.whenStreaming();
  await source.query('insert into t values (1)');
  await waitFor(() => calls.length === 1);
  return { source, target, pipeline, calls, release };
}

async function noSession(target: TestDatabase): Promise<void> {
  await waitFor(
    async () => (await sessionsNamed(target, SESSION)).length === 0,
  );
}

describe('no session is left', () => {
  it('after a stop, while none is lost', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline } = libraryCapture(source, target);
    await streamingAfterOne(pipeline, source);
    expect(await sessionsNamed(target, SESSION)).toHaveLength(1);
    await pipeline.stop();
    await noSession(target);
  });

  it('after a handler has outlived a stop: what it did is not stored, and comes again', async () => {
    const { target, pipeline, calls, release } = await heldAtFirst({
      drainTimeout: 100,
    });
    await pipeline.stop();
    await noSession(target);
    const before = await stored(target);
    release.resolve();
    pipeline.start();
    await pipeline.whenStreaming();
    await pipeline.caughtUp();
    expect(inserted(calls, 'id')).toEqual([1, 1]);
    expect(await stored(target)).not.toEqual(before);
  });

  it('after a handler has outlived a halt: what it did is stored', async () => {
    const { source, target, pipeline, release } = await heldAtFirst();
    // What is decoded next finds its publication gone.
    await source.query('drop publication p; insert into t values (2)');
    await haltedFor(pipeline, 'publication/missing');
    expect(await sessionsNamed(target, SESSION)).toHaveLength(1);
    const before = await stored(target);
    release.resolve();
    await noSession(target);
    expect(await stored(target)).not.toEqual(before);
    expect(await stored(target)).toHaveLength(1);
  });

  it('after a stop of a pipeline that was started again while its store was still tried', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline, calls, retries } = libraryCapture(
      source,
      target,
      { maxRetries: 1_000_000, batch: { maxTransactions: 2 } },
      { drainTimeout: 100 },
    );
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await pipeline.caughtUp();
    await refuseCommits(target);
    await source.query('insert into t values (2)');
    await waitFor(() => calls.length === 2);
    await source.query('drop publication p; insert into t values (3)');
    await haltedFor(pipeline, 'publication/missing');
    await waitFor(() => retries.length > 1);
    pipeline.start();
    await pipeline.stop();
    const tried = retries.length;
    await source.query('select pg_sleep(0.5)');
    expect(retries).toHaveLength(tried);
    expect(await sessionsNamed(target, SESSION)).toEqual([]);
  });

  it('after a stop that waits for a handler of the start before', async () => {
    const { source, target, pipeline, release } = await heldAtFirst();
    await source.query('drop publication p; insert into t values (2)');
    await haltedFor(pipeline, 'publication/missing');
    const before = await stored(target);
    pipeline.start();
    const stopped = pipeline.stop();
    await waitFor(() => pipeline.state === 'draining');
    release.resolve();
    await stopped;
    expect(await stored(target)).not.toEqual(before);
    await noSession(target);
  });

  it('after a stop of a halted pipeline whose handler hangs', async () => {
    const { source, target, pipeline } = await heldAtFirst({
      drainTimeout: 100,
    });
    await source.query('drop publication p; insert into t values (2)');
    await haltedFor(pipeline, 'publication/missing');
    await pipeline.stop();
    await noSession(target);
  });
});
