import { expect, it, onTestFinished } from 'vitest';
import { capture } from './support/capture.js';
import { changesOf } from './support/changes-of.js';
import { walsenderPid } from './support/logical-slot.js';
import { present } from './support/present.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { recordStatusUpdates } from './support/status-tap.js';
import { useServer } from './support/suite.js';
import { TcpProxy } from './support/tcp-proxy.js';
import { deferred, waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '1s' } });

it('a chunk waits for what it has seen, though a server that slept answers all questions before it looks at its log', async () => {
  const { source, target } = await sourceAndTarget(
    suite,
    `create table a(id int primary key); insert into a values (1);
     create table t(id int primary key); insert into t select generate_series(1, 10);
     create publication p for table a, t`,
  );
  const proxy = await TcpProxy.start(suite.server.connection);
  onTestFinished(() => proxy.close());
  const updates = recordStatusUpdates(proxy);
  const order: unknown[] = [];
  const reached = deferred();
  const release = deferred();
  const { pipeline } = capture(source, {
    target,
    connection: { ...source.connection, port: proxy.port },
    goForwardOnly: false,
    snapshot: { mode: 'incremental', maxPendingChunks: 1 },
    apply: async (transaction) => {
      order.push(changesOf(transaction).map(({ op }) => op));
    },
    sink: {
      snapshot: async (
        rows: readonly { record: Record<string, unknown> }[],
        { relation }: { relation: string },
      ) => {
        if (rows.length === 0) return;
        order.push(
          `${relation}: ${rows.map(({ record }) => record['id']).join()}`,
        );
        if (relation !== 'public.a') return;
        reached.resolve();
        await release.promise;
      },
    },
  });
  pipeline.start();
  await reached.promise;
  const pid = present(await walsenderPid(source, pipeline.options.slotName));
  process.kill(pid, 'SIGSTOP');
  onTestFinished(() => {
    process.kill(pid, 'SIGCONT');
  });
  await source.query('update t set id = 1000 where id = 1');
  const asked = () =>
    updates.filter(({ replyRequested }) => replyRequested).length;
  const before = asked();
  release.resolve();
  // By the chunk, and by the watch over the life of the connection.
  await waitFor(() => asked() >= before + 2, { timeout: 20_000 });
  process.kill(pid, 'SIGCONT');
  await waitFor(() => pipeline.status().snapshot?.state === 'complete', {
    timeout: 20_000,
  });
  expect(order).toEqual([
    'public.a: 1',
    ['update'],
    'public.t: 2,3,4,5,6,7,8,9,10,1000',
  ]);
}, 60_000);
