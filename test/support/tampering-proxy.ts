import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { freePort } from './free-port.js';
import type { DatabaseConnection } from './test-database.js';

const HEADER = 5;
const COPY_DATA = 'd'.charCodeAt(0);
const XLOG_DATA = 'w'.charCodeAt(0);
const XLOG_DATA_HEADER = 25;

/** Changes what an output plugin has sent, or what the client has, in place. */
export type Tamper = (message: Buffer) => void;

/**
 * Starts a proxy that tampers with the messages of the stream; it ends when the test has finished.
 *
 * @param tamperWithCommand - gets all bytes of the client as they come: a command arrives whole
 */
export async function tamperingProxy(
  target: DatabaseConnection,
  tamper: Tamper,
  tamperWithCommand: Tamper = () => {},
): Promise<DatabaseConnection> {
  const sockets: Socket[] = [];
  const listener = createServer((client) => {
    const server = connect(target.port, target.host);
    sockets.push(client, server);
    client.on('error', () => {});
    server.on('error', () => {});
    client.on('close', () => server.destroy());
    server.on('close', () => client.destroy());
    client.on('data', (bytes: Buffer) => {
      tamperWithCommand(bytes);
      server.write(bytes);
    });
    let rest = Buffer.alloc(0);
    server.on('data', (bytes: Buffer) => {
      rest = Buffer.concat([rest, bytes]);
      const whole = tamperWith(rest, tamper);
      client.write(rest.subarray(0, whole));
      rest = rest.subarray(whole);
    });
  });
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    listener.close();
  });
  const port = await freePort();
  await once(listener.listen(port, '127.0.0.1'), 'listening');
  return { ...target, host: '127.0.0.1', port };
}

/** Tampers with all messages that are complete, and returns where they end. */
function tamperWith(bytes: Buffer, tamper: Tamper): number {
  let start = 0;
  while (bytes.length - start >= HEADER) {
    const end = start + 1 + bytes.readInt32BE(start + 1);
    if (end > bytes.length) break;
    const payload = start + HEADER;
    if (bytes[start] === COPY_DATA && bytes[payload] === XLOG_DATA)
      tamper(bytes.subarray(payload + XLOG_DATA_HEADER, end));
    start = end;
  }
  return start;
}

/** Replaces a text wherever it stands, by one of the same length. */
export function replaceText(bytes: Buffer, from: string, to: string): void {
  if (from.length !== to.length)
    throw new Error('The texts differ in their lengths.');
  for (
    let at = bytes.indexOf(from);
    at !== -1;
    at = bytes.indexOf(from, at + from.length)
  )
    bytes.write(to, at, 'latin1');
}
