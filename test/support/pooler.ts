import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { Client } from 'pg';
import { onTestFinished } from 'vitest';
import { freePort } from './free-port.js';
import type { DatabaseConnection } from './test-database.js';

/**
 * What stands before a server does to a session.
 *
 * - `refuses`: it does not know the start-up parameter `replication`, and says so (PgBouncer before 1.23)
 * - `drops`: it passes over that parameter (the same with `ignore_startup_parameters = replication`)
 * - `relabels`: it passes everything on, and announces process ids of its own (the proxy of a hosted service)
 * - `shares`: it does so, and runs all ordinary sessions on one server process (a pooler in transaction mode)
 */
export type PoolerKind = 'refuses' | 'drops' | 'relabels' | 'shares';

const OWN_PROCESS_ID = -27_102_208;
const PARAMETER = 'replication\0database\0';

/** Starts a stand-in for a pooler before a server; it ends when the test has finished. */
export async function startPooler(
  target: DatabaseConnection,
  kind: PoolerKind,
): Promise<DatabaseConnection> {
  const port = await freePort();
  const sockets: Socket[] = [];
  const shared = new Client(target);
  shared.on('error', () => {});
  if (kind === 'shares') await shared.connect();
  const listener = createServer((client) => {
    sockets.push(client);
    client.on('error', () => {});
    client.once('data', (startUp) => {
      const replicates = startUp.includes(PARAMETER);
      if (replicates && kind === 'refuses') return refuse(client);
      if (!replicates && kind === 'shares') return serve(client, shared);
      const server = connect(target.port, target.host);
      sockets.push(server);
      server.on('error', () => client.destroy());
      server.on('close', () => client.destroy());
      client.on('close', () => server.destroy());
      server.write(kind === 'drops' ? withoutReplication(startUp) : startUp);
      client.pipe(server);
      if (kind === 'drops') server.pipe(client);
      else relabel(server, client);
    });
  });
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    listener.close();
    if (kind === 'shares') await shared.end();
  });
  await once(listener.listen(port, '127.0.0.1'), 'listening');
  return { ...target, host: '127.0.0.1', port };
}

function withoutReplication(startUp: Buffer): Buffer {
  const at = startUp.indexOf(PARAMETER);
  if (at < 0) return startUp;
  const shorter = Buffer.concat([
    startUp.subarray(0, at),
    startUp.subarray(at + PARAMETER.length),
  ]);
  shorter.writeInt32BE(shorter.length);
  return shorter;
}

function refuse(client: Socket): void {
  const fields = [
    'SFATAL',
    'C08P01',
    'Munsupported startup parameter: replication',
    '',
  ];
  client.end(message('E', Buffer.concat(fields.map((field) => text(field)))));
}

/** Passes on what the server says, with another process id in the message BackendKeyData. */
function relabel(server: Socket, client: Socket): void {
  let waiting = Buffer.alloc(0);
  const take = (bytes: Buffer): void => {
    waiting = Buffer.concat([waiting, bytes]);
    for (;;) {
      const length = waiting.length < 5 ? Infinity : waiting.readInt32BE(1) + 1;
      if (waiting.length < length) return;
      const isKey = waiting[0] === 'K'.charCodeAt(0);
      if (isKey) waiting.writeInt32BE(OWN_PROCESS_ID, 5);
      client.write(waiting.subarray(0, length));
      waiting = waiting.subarray(length);
      if (!isKey) continue;
      client.write(waiting);
      server.off('data', take);
      server.pipe(client);
      return;
    }
  };
  server.on('data', take);
}

/** Answers the simple queries of a client from a session that others use too. */
function serve(client: Socket, shared: Client): void {
  const key = Buffer.alloc(8);
  key.writeInt32BE(OWN_PROCESS_ID);
  const ready = message('Z', Buffer.from('I'));
  client.write(
    Buffer.concat([message('R', Buffer.alloc(4)), message('K', key), ready]),
  );
  client.on('data', (bytes) => {
    if (bytes[0] !== 'Q'.charCodeAt(0)) return void client.end();
    const statement = bytes.toString('utf8', 5, bytes.length - 1);
    const asText = { getTypeParser: () => String };
    shared
      .query<(string | null)[]>({
        text: statement,
        rowMode: 'array',
        types: asText,
      })
      .then(
        ({ rows, fields }) =>
          client.write(
            Buffer.concat([
              description(fields.map(({ name }) => name)),
              ...rows.map(dataRow),
              message('C', text('SELECT')),
              ready,
            ]),
          ),
        () => client.destroy(),
      );
  });
}

function description(names: readonly string[]): Buffer {
  const columns = names.flatMap((name) => {
    const type = Buffer.alloc(18);
    type.writeInt32BE(25, 6);
    type.writeInt16BE(-1, 10);
    type.writeInt32BE(-1, 12);
    return [text(name), type];
  });
  return message('T', Buffer.concat([int16(names.length), ...columns]));
}

function dataRow(values: readonly (string | null)[]): Buffer {
  const columns = values.flatMap((value) => {
    const bytes = Buffer.from(value ?? '');
    return [int32(value === null ? -1 : bytes.length), bytes];
  });
  return message('D', Buffer.concat([int16(values.length), ...columns]));
}

function message(type: string, content: Buffer): Buffer {
  return Buffer.concat([Buffer.from(type), int32(content.length + 4), content]);
}

function text(value: string): Buffer {
  return Buffer.from(`${value}\0`);
}

function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(value);
  return bytes;
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}
