import type { Direction } from './proxied-connection.js';
import type { TcpProxy } from './tcp-proxy.js';
import { waitFor } from './wait-for.js';

/** Whether these bytes are the moment that is waited for. */
export type Moment = (bytes: Buffer, direction: Direction) => boolean;

/** Reconnecting may have slowed down before. */
const TIMEOUT_MS = 45_000;

/** Waits for a moment on the wire, and cuts the network before what was seen has passed. */
export async function catchAt(proxy: TcpProxy, moment: Moment): Promise<void> {
  let caught = false;
  proxy.tap = (bytes, direction) => {
    if (caught || !moment(bytes, direction)) return;
    caught = true;
    proxy.cut();
  };
  try {
    await waitFor(() => caught, {
      message: 'the moment on the wire',
      timeout: TIMEOUT_MS,
    });
  } finally {
    proxy.tap = null;
  }
}

/** The client sends this text. */
export function clientSends(text: string): Moment {
  return (bytes, direction) =>
    direction === 'client-to-server' && bytes.includes(text);
}

/** The server sends this text. */
export function serverSends(text: string): Moment {
  return (bytes, direction) =>
    direction === 'server-to-client' && bytes.includes(text);
}

/** The server sends something after the client has sent this text. */
export function serverAnswers(text: string): Moment {
  const asks = clientSends(text);
  let asked = false;
  return (bytes, direction) => {
    if (asks(bytes, direction)) asked = true;
    return asked && direction === 'server-to-client';
  };
}

/** The server has sent as many bytes. */
export function serverHasSent(count: number): Moment {
  let left = count;
  return (bytes, direction) => {
    if (direction === 'server-to-client') left -= bytes.length;
    return left <= 0;
  };
}
