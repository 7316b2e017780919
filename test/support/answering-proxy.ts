import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import type { ServerConnection } from './test-database.js';

/** Where a server may report an error of a pipeline. */
export type FaultyStep = 'login' | 'stream';

/** Stands before a server and answers in its place, with errors that a real one cannot be made to report when wanted. */
export interface AnsweringProxy {
  readonly port: number;
  /** SQLSTATE that is answered. */
  sqlstate: string;
  /** What the error says, and nobody repeats. */
  text: string;
  /** How often it is answered from now on. */
  times: number;
  /** Errors answered so far. */
  readonly answered: number;
}

/** First byte of the message by which the server begins a stream. */
const COPY_BOTH = 'W'.charCodeAt(0);
/** Of a message: its type and its length. */
const HEADER = 5;

/**
 * Starts a proxy of the running test that reports an error in place of the server: at login, or a moment after a stream
 * has begun, when frames have flowed.
 */
export async function answeringProxy(
  { host, port }: ServerConnection,
  step: FaultyStep,
): Promise<AnsweringProxy> {
  const sockets: Socket[] = [];
  const state = {
    port: 0,
    sqlstate: 'XX000',
    text: 'planted-secret',
    times: 0,
    answered: 0,
  };
  const fail = (client: Socket): void => {
    if (state.times === 0 || client.destroyed) return;
    state.times -= 1;
    state.answered += 1;
    client.end(errorResponse(state.sqlstate, state.text));
  };
  const listener = createServer((client) => {
    client.on('error', () => {});
    sockets.push(client);
    if (step === 'login' && state.times > 0) {
      client.once('data', () => fail(client));
      return;
    }
    const server = connect(port, host);
    sockets.push(server);
    server.on('error', () => client.destroy());
    client.on('close', () => server.destroy());
    server.on('close', () => client.end());
    client.pipe(server);
    let rest = Buffer.alloc(0);
    server.on('data', (bytes: Buffer) => {
      if (!client.writable) return;
      rest = Buffer.concat([rest, bytes]);
      const { end, types } = wholeMessages(rest);
      // No error comes in the middle of a message.
      client.write(rest.subarray(0, end));
      rest = rest.subarray(end);
      if (step === 'stream' && types.has(COPY_BOTH))
        setTimeout(() => fail(client), 100).unref();
    });
  });
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    listener.close();
  });
  await once(listener.listen(0, '127.0.0.1'), 'listening');
  const address = listener.address();
  if (typeof address === 'object' && address !== null)
    state.port = address.port;
  return state;
}

/** Where the last message ends that is complete, and the types of all that are. */
function wholeMessages(bytes: Buffer): {
  readonly end: number;
  readonly types: ReadonlySet<number>;
} {
  const types = new Set<number>();
  let end = 0;
  while (bytes.length - end >= HEADER) {
    const next = end + 1 + bytes.readInt32BE(end + 1);
    if (next > bytes.length) break;
    types.add(bytes.readUInt8(end));
    end = next;
  }
  return { end, types };
}

/**
 * An ErrorResponse of severity FATAL.
 *
 * @see {@link https://www.postgresql.org/docs/current/protocol-error-fields.html | Error and Notice Message Fields}
 */
function errorResponse(sqlstate: string, text: string): Buffer {
  const fields = `SFATAL\0VFATAL\0C${sqlstate}\0M${text}\0\0`;
  const head = Buffer.alloc(5);
  head.write('E');
  head.writeInt32BE(4 + fields.length, 1);
  return Buffer.concat([head, Buffer.from(fields, 'latin1')]);
}
