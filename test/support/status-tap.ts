import { type StatusUpdate, StatusUpdateReader } from './status-updates.js';
import type { TcpProxy } from './tcp-proxy.js';

/** Keeps every status update that clients send through a proxy, in order. */
export function recordStatusUpdates(proxy: TcpProxy): StatusUpdate[] {
  const readers = new Map<number, StatusUpdateReader>();
  const updates: StatusUpdate[] = [];
  proxy.tap = (bytes, direction, connection) => {
    if (direction !== 'client-to-server') return;
    const reader = readers.get(connection) ?? new StatusUpdateReader();
    readers.set(connection, reader);
    updates.push(...reader.read(bytes));
  };
  return updates;
}
