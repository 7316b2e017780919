import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Below the range from which systems take the ports of outgoing connections (from 32768 on Linux, 49152 elsewhere):
 * there, a client that retries while the server is down may get the very port it connects to.
 */
const FIRST = 15_000;
const LAST = 32_000;

/** A port of 127.0.0.1 that nobody listens on. Another process may be faster: the caller tries again then. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, LAST);
    if (await isFree(port)) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
