import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { capture, inserted } from './support/capture.js';
import { freePort } from './support/free-port.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer();

/** Stands before a server and says WARNUNG for WARNING, as one with lc_messages = de_DE does. */
async function germanServer(target: {
  host: string;
  port: number;
}): Promise<{ host: string; port: number }> {
  const [host, port] = ['127.0.0.1', await freePort()];
  const server = createServer((client) => {
    const upstream = connect(target.port, target.host);
    for (const socket of [client, upstream]) socket.on('error', () => {});
    client.pipe(upstream);
    upstream.on('data', (bytes) =>
      client.write(
        bytes.toString('latin1').replaceAll('SWARNING\0', 'SWARNUNG\0'),
        'latin1',
      ),
    );
    upstream.on('close', () => client.destroy());
    client.on('close', () => upstream.destroy());
  });
  await once(server.listen(port, host), 'listening');
  onTestFinished(() => void server.close());
  return { host, port };
}

it('a publication that is dropped in mid-stream halts, whatever language the server speaks', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const { pipeline, applied } = capture(source, {
    target,
    connection: {
      ...source.connection,
      ...(await germanServer(source.connection)),
    },
  });
  pipeline.start();
  await pipeline.whenStreaming();
  await source.query('insert into t values (1)');
  await pipeline.caughtUp();
  await source.query('drop publication p');
  await source.query('insert into t values (2)');
  await source.query('create publication p for table t');
  await source.query('insert into t values (3)');
  await waitFor(() => pipeline.halt ?? applied.length > 1);
  expect(inserted(applied, 'id')).toEqual([1]);
  expect(pipeline.halt?.code).toBe('publication/missing');
});
