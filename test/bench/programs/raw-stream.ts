import { Client } from 'pg';
import { rawConnection } from '../../../lib/engine/server/pg-internals.js';
import { PacedReading } from '../../../lib/engine/source/paced-reading.js';
import { ReadGate } from '../../../lib/engine/source/read-gate.js';
import { writeStatus } from '../../../lib/engine/source/wire.js';
import { endWithBench, setting, sourceConnection } from './settings.js';

const COPY_BOTH_RESPONSE = 'W'.charCodeAt(0);
const ERROR_RESPONSE = 'E'.charCodeAt(0);
const COPY_DATA = 'd'.charCodeAt(0);
const KEEPALIVE = 'k'.charCodeAt(0);
const XLOG_DATA = 'w'.charCodeAt(0);
/** Type byte and length. */
const HEADER = 5;
const XLOG_DATA_HEADER = 25;
const KEEPALIVE_REPLY_ASKED = 17;
const STATUS_INTERVAL_MS = 500;

/** What the stream is told to. */
export interface RawListener {
  /** The server begins to stream. */
  started(): void;
  /** A message of the output plugin begins at this place. */
  message(bytes: Buffer, at: number): void;
}

/** Reads a slot straight from the socket, as fast as bytes come, and copies only what two reads share. */
export async function openRawStream(listener: RawListener): Promise<void> {
  endWithBench();
  const replication = { replication: 'database' };
  const client = new Client({ ...sourceConnection(), ...replication });
  await client.connect();
  const connection = rawConnection(client);
  const { stream } = connection;
  let received = 0n;
  const sendStatus = (): void => {
    const status = { write: received, flush: 0n, apply: 0n };
    connection.sendCopyFromChunk(writeStatus(status, Date.now(), false));
  };
  let rest: Buffer | null = null;
  // From here on nothing passes through the client.
  stream.removeAllListeners('data');
  if (process.env['READ_PACING'] === 'on')
    new PacedReading(stream, new ReadGate(stream), true).start();
  stream.on('data', (chunk: Buffer) => {
    const bytes = rest === null ? chunk : Buffer.concat([rest, chunk]);
    let at = 0;
    while (at + HEADER <= bytes.length) {
      const end = at + 1 + bytes.readUInt32BE(at + 1);
      if (end > bytes.length) break;
      const body = at + HEADER;
      if (bytes[at] === COPY_DATA) {
        if (bytes[body] === XLOG_DATA) {
          listener.message(bytes, body + XLOG_DATA_HEADER);
        } else if (bytes[body] === KEEPALIVE) {
          received = bytes.readBigUInt64BE(body + 1);
          if (bytes[body + KEEPALIVE_REPLY_ASKED] === 1) sendStatus();
        }
      } else if (bytes[at] === COPY_BOTH_RESPONSE) {
        listener.started();
        setInterval(sendStatus, STATUS_INTERVAL_MS);
      } else if (bytes[at] === ERROR_RESPONSE) {
        throw new Error('The server refuses to stream.');
      }
      at = end;
    }
    rest = at < bytes.length ? bytes.subarray(at) : null;
  });
  client.on('error', (error) => {
    throw error;
  });
  void client.query(
    `START_REPLICATION SLOT ${setting('SLOT')} LOGICAL 0/0 (proto_version '1', publication_names 'p')`,
  );
}
