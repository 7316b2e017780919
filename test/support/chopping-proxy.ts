import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import type { ServerConnection } from './test-database.js';

/** Small enough that a reader gains by waiting. */
const PIECE_BYTES = 2_048;

/**
 * Passes connections on to a server, and hands its answers to the client in small pieces, one each turn of the event loop.
 * So a stream is dense and each read is small, however busy the machine is. Closed when the test has finished.
 *
 * @param listenAt - a port, 0 for any, or the path of a Unix socket
 */
export async function chop(
  { host, port }: ServerConnection,
  listenAt: number | string,
): Promise<Server> {
  const sockets: Socket[] = [];
  const proxy = createServer((client) => {
    const server = connect(port, host);
    sockets.push(client, server);
    client.on('error', () => server.destroy());
    server.on('error', () => client.destroy());
    client.on('close', () => server.destroy());
    client.pipe(server);
    void hand(server, client);
  });
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    proxy.close();
  });
  await once(
    typeof listenAt === 'string'
      ? proxy.listen(listenAt)
      : proxy.listen(listenAt, '127.0.0.1'),
    'listening',
  );
  return proxy;
}

async function hand(from: Socket, to: Socket): Promise<void> {
  to.setNoDelay(true);
  try {
    for await (const chunk of from) {
      if (!Buffer.isBuffer(chunk)) continue;
      for (let at = 0; at < chunk.length; at += PIECE_BYTES) {
        const flows = to.write(chunk.subarray(at, at + PIECE_BYTES));
        if (!flows && !to.destroyed)
          await Promise.race([once(to, 'drain'), once(to, 'close')]);
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
    to.end();
  } catch {
    to.destroy();
  }
}
