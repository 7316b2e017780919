import { Socket } from 'node:net';
import type { ClientConfig } from 'pg';

/** What happened to the sockets of a connection. */
export interface SocketLog {
  /** Reads that brought data. */
  reads: number;
  bytes: number;
  pauses: number;
}

/** Connection settings whose sockets are watched. */
export interface WatchedSockets {
  readonly connection: ClientConfig;
  readonly log: SocketLog;
}

/** Watches every socket that is made for a connection. */
export function watchSockets(connection: ClientConfig): WatchedSockets {
  const log: SocketLog = { reads: 0, bytes: 0, pauses: 0 };
  return { connection: { ...connection, stream: () => watch(log) }, log };
}

function watch(log: SocketLog): Socket {
  const socket = new Socket();
  const pause = socket.pause.bind(socket);
  socket.pause = () => {
    log.pauses += 1;
    return pause();
  };
  socket.on('data', (chunk) => {
    log.reads += 1;
    log.bytes += chunk.length;
  });
  return socket;
}
