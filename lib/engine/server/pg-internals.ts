import type { Client } from 'pg';
import type { Duplex } from 'node:stream';
import { ConnectionFault } from '../model/connection-fault.js';
import { errorClass } from '../model/error-class.js';
import {
  type CopyDataListener,
  CopyDataSplitter,
} from './copy-data-splitter.js';

/**
 * What logical replication needs of `pg` beyond its documented interface: the raw connection with its socket, the
 * copy frames in both directions, the process id that came with the cancel key, freedom from the read timeout, and a parser that cannot end the process and is spared
 * what it is too slow for. This file is the only one that knows these names;
 * `test/pg-contract.e2e-spec.ts` holds them against the oldest and the newest `pg` of the peer range.
 */
export interface RawConnection {
  readonly stream: Duplex;
  on(event: 'replicationStart', listener: () => void): unknown;
  /** Writes one CopyData frame. */
  sendCopyFromChunk(chunk: Buffer): void;
  /** Writes CopyDone. */
  endCopyFrom(): void;
  /** Parses what arrives on a socket; called for each that the connection uses. */
  attachListeners(stream: ListenedStream): void;
}

/** The part of a socket that the parser uses. */
interface ListenedStream {
  on(event: string, listener: (chunk: Buffer) => void): unknown;
}

/** The raw connection of a client. */
export function rawConnection(client: Client): RawConnection {
  const connection: unknown = client.connection;
  if (!isRawConnection(connection)) {
    throw new Error(
      'This version of pg does not expose the raw connection; install a version of the peer range.',
    );
  }
  return connection;
}

/** Ends the socket at once, also while the client still connects. The client then emits `end`. */
export function destroySocket(client: Client): void {
  rawConnection(client).stream.destroy();
}

/** The process id that the server, or what stands before it, gave with the key for cancelling; `null` without one. */
export function announcedProcessId(client: Client): number | null {
  const processId: unknown = Reflect.get(client, 'processID');
  return typeof processId === 'number' ? processId : null;
}

/** A read timeout from a connection string would end the stream; a replication session has none. */
export function liftReadTimeout(client: Client): void {
  const parameters: unknown = Reflect.get(client, 'connectionParameters');
  if (typeof parameters === 'object' && parameters !== null)
    Reflect.set(parameters, 'query_timeout', 0);
}

/** Rows come as text, whatever the settings of the connection and the defaults of `pg` say. */
export function readAsText(client: Client): void {
  Reflect.set(client, 'binary', false);
}

/**
 * Lets an answer that `pg` cannot parse end the connection. Its parser throws out of the socket's `data` event, which would
 * end the process: for bytes that are no protocol, and where the server asks for a way to log in that `pg` does not know,
 * such as GSSAPI. To be called before the client connects.
 *
 * @param copyData - gets the content of CopyData messages in place of the parser, which makes objects of each
 */
export function containParser(
  client: Client,
  copyData: CopyDataListener | null = null,
): void {
  const connection = rawConnection(client);
  const attachListeners = connection.attachListeners.bind(connection);
  connection.attachListeners = (stream) => {
    attachListeners({
      on: (event, listener) => {
        const taking =
          event === 'data' && copyData !== null
            ? splitting(copyData, listener)
            : listener;
        return stream.on(event, contained(connection, taking));
      },
    });
  };
}

/** A listener that ends the connection instead of throwing. */
function contained(
  connection: RawConnection,
  listener: (chunk: Buffer) => void,
): (chunk: Buffer) => void {
  return (chunk) => {
    try {
      listener(chunk);
    } catch (error) {
      connection.stream.destroy(
        new ConnectionFault(
          `the server's answer cannot be read (${errorClass(error)})`,
        ),
      );
    }
  };
}

/** A listener that keeps CopyData messages from the parser. */
function splitting(
  copyData: CopyDataListener,
  parser: (bytes: Buffer) => void,
): (chunk: Buffer) => void {
  const splitter = new CopyDataSplitter(copyData, parser);
  return (chunk) => splitter.take(chunk);
}

function isRawConnection(value: unknown): value is RawConnection {
  return (
    typeof value === 'object' &&
    value !== null &&
    'stream' in value &&
    'on' in value &&
    'sendCopyFromChunk' in value &&
    typeof value.sendCopyFromChunk === 'function' &&
    'endCopyFrom' in value &&
    typeof value.endCopyFrom === 'function' &&
    'attachListeners' in value &&
    typeof value.attachListeners === 'function'
  );
}
