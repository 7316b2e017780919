import { Session } from 'node:inspector/promises';
import { expect, it, onTestFinished, vi } from 'vitest';
import { capture, inserted } from './support/capture.js';
import { freePort } from './support/free-port.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import { TcpProxy } from './support/tcp-proxy.js';
import { waitFor } from './support/wait-for.js';

// An outage of hours in seconds.
vi.mock('../lib/engine/server/retry-delay.js', () => ({
  authenticationDelay: () => 1,
  backoffDelay: () => 1,
  pollDelay: () => 1,
}));

const suite = useServer();
const ATTEMPTS = 250;
const WARM_UP = 50;

it('that fail hundreds of times leave no handle, listener or memory behind (D05)', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const proxy = await TcpProxy.start(source.connection);
  onTestFinished(() => proxy.close());
  proxy.tap = (bytes, direction) => {
    if (direction === 'client-to-server' && bytes.includes('IDENTIFY_SYSTEM'))
      proxy.reset();
  };
  const warnings: string[] = [];
  const warn = ({ name }: Error): void => void warnings.push(name);
  process.on('warning', warn);
  onTestFinished(() => void process.off('warning', warn));
  let port = await freePort();
  const { pipeline, applied } = capture(source, {
    target,
    connection: async () => ({ ...source.connection, port }),
  });
  pipeline.start();
  for (const place of ['nobody listens', 'the chain is cut']) {
    const first = pipeline.status().attempt;
    const attempts = async (count: number): Promise<void> => {
      await waitFor(() => pipeline.status().attempt >= first + count, {
        message: `${count} attempts while ${place}`,
        timeout: 60_000,
      });
    };
    await attempts(WARM_UP);
    const before = await used();
    await attempts(ATTEMPTS);
    const after = await used();
    // One attempt may be under way.
    expect(after.handles).toBeLessThanOrEqual(before.handles + 4);
    expect(after.heap - before.heap).toBeLessThan(3_000_000);
    port = proxy.port;
  }
  proxy.tap = null;
  await pipeline.whenStreaming();
  await source.query('insert into t values (1)');
  await pipeline.caughtUp();
  expect(inserted(applied, 'id')).toEqual([1]);
  expect(warnings).toEqual([]);
}, 120_000);

/** Sockets and timers, and bytes of the heap when all garbage is gone. */
async function used(): Promise<{ handles: number; heap: number }> {
  const session = new Session();
  session.connect();
  await session.post('HeapProfiler.collectGarbage');
  session.disconnect();
  const handles = process
    .getActiveResourcesInfo()
    .filter((name) => name === 'TCPSocketWrap' || name === 'Timeout').length;
  return { handles, heap: process.memoryUsage().heapUsed };
}
