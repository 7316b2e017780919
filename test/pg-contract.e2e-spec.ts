import { createServer } from 'node:net';
import pg, { type Client } from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { CopyDataListener } from '../lib/engine/server/copy-data-splitter.js';
import {
  announcedProcessId,
  containParser,
  destroySocket,
  liftReadTimeout,
  readAsText,
  rawConnection,
} from '../lib/engine/server/pg-internals.js';
import {
  frameKind,
  writeStatus,
  XLOG_DATA_HEADER,
} from '../lib/engine/source/wire.js';
import { freePort } from './support/free-port.js';
import {
  confirmedUpTo,
  currentLsn,
  terminateBackend,
  walsenderPid,
} from './support/logical-slot.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer();
const SLOT = 'contract';
const START = `START_REPLICATION SLOT ${SLOT} LOGICAL 0/0 (proto_version '1', publication_names '"p"')`;

/** A client of a WAL sender, and a database with a slot behind it. */
async function session(
  copyData: CopyDataListener | null = () => {},
): Promise<{ client: Client; source: TestDatabase }> {
  const source = await suite.database();
  await source.query(
    'create table t(id int primary key, pad text); create publication p for table t',
  );
  await source.query('select pg_create_logical_replication_slot($1, $2)', [
    SLOT,
    'pgoutput',
  ]);
  return { client: await connect(source, copyData), source };
}

async function connect(
  source: TestDatabase,
  copyData: CopyDataListener | null,
): Promise<Client> {
  const config = { ...source.connection, replication: 'database' };
  const client = new pg.Client(config);
  containParser(client, copyData);
  client.on('error', () => {});
  await client.connect();
  onTestFinished(() => destroySocket(client));
  return client;
}

/** Starts the stream. */
async function stream(client: Client): Promise<{ ended: Promise<unknown> }> {
  const connection = rawConnection(client);
  const started = new Promise<void>((resolve) =>
    connection.on('replicationStart', resolve),
  );
  const ended = client.query(START);
  ended.catch(() => {});
  await Promise.race([started, ended]);
  return { ended };
}

describe('what logical replication needs of pg', () => {
  it('answers replication commands like queries', async () => {
    const { client, source } = await session();
    const { rows } = await client.query<{ dbname: string }>('IDENTIFY_SYSTEM');
    expect(rows).toMatchObject([{ dbname: source.name }]);
  });

  it('keeps the process id that the server has announced', async () => {
    const { client } = await session();
    const { rows } = await client.query<{ pid: string }>(
      'select pg_backend_pid()::text as pid',
    );
    expect(rows).toEqual([{ pid: String(announcedProcessId(client)) }]);
  });

  it('tells the start of the stream before the first frame, and gives every frame whole', async () => {
    const events: string[] = [];
    const { client, source } = await session((bytes, start, end) =>
      events.push(frameKind(bytes, start, end)),
    );
    await source.query("insert into t values (1, 'a')");
    const connection = rawConnection(client);
    connection.on('replicationStart', () => events.push('start'));
    client.query(START).catch(() => {});
    await waitFor(() => events.includes('data'));
    expect(events[0]).toBe('start');
    expect(events).not.toContain('malformed');
  });

  it('can be paused when the stream starts, before anything else is read', async () => {
    let frames = 0;
    let early = 0;
    const { client, source } = await session(() => (frames += 1));
    await source.query(
      "insert into t select g, repeat('x', 1000) from generate_series(1, 2000) g",
    );
    const connection = rawConnection(client);
    const started = new Promise<void>((resolve) =>
      connection.on('replicationStart', () => {
        connection.stream.pause();
        early = frames;
        resolve();
      }),
    );
    client.query(START).catch(() => {});
    await started;
    // A server process has decoded all this when it waits for the client to read.
    await waitFor(async () => {
      const [row] = await suite.server.query<{ waits: boolean }>(
        "select wait_event like 'WalSender%' as waits from pg_stat_activity where backend_type = 'walsender'",
      );
      return row?.waits;
    });
    expect(early).toBe(0);
    expect(frames).toBeLessThan(2_000);
    connection.stream.resume();
    await waitFor(() => frames >= 2_000);
  });

  it('gives the same frames as the parser, small and large', async () => {
    const ours: string[] = [];
    const { client, source } = await session((bytes, start, end) => {
      if (frameKind(bytes, start, end) === 'data')
        ours.push(bytes.toString('hex', start + XLOG_DATA_HEADER, end));
    });
    await source.query(
      "insert into t select g, repeat('x', g * g * 100) from generate_series(1, 100) g",
    );
    await stream(client);
    await waitFor(() => ours.length >= 103);
    rawConnection(client).endCopyFrom();
    await client.end();

    const theirs: string[] = [];
    const plain = await connect(source, null);
    plain.connection.on('copyData', ({ chunk }: { chunk: Buffer }) => {
      if (frameKind(chunk, 0, chunk.length) === 'data')
        theirs.push(chunk.toString('hex', XLOG_DATA_HEADER));
    });
    await stream(plain);
    await waitFor(() => theirs.length >= 103);
    expect(ours).toEqual(theirs);
  });

  it('ends the connection when whoever takes the frames throws, and tells the class of the error alone', async () => {
    const { client, source } = await session(() => {
      throw new TypeError('secret');
    });
    const { ended } = await stream(client);
    await source.query("insert into t values (1, 'a')");
    await expect(ended).rejects.toThrow(
      /^the server's answer .*\(TypeError\)$/,
    );
  });

  it('sends status updates, also while reading is paused', async () => {
    const { client, source } = await session();
    await stream(client);
    const connection = rawConnection(client);
    connection.stream.pause();
    await source.query("insert into t values (1, 'a')");
    const lsn = await currentLsn(source);
    const status = { write: lsn, flush: lsn, apply: lsn };
    connection.sendCopyFromChunk(writeStatus(status, Date.now(), false));
    await confirmedUpTo(suite.server, SLOT, lsn);
  });

  it('ends the copy in order: the query resolves and the session goes on', async () => {
    const { client } = await session();
    const { ended } = await stream(client);
    rawConnection(client).endCopyFrom();
    await ended;
    const { rows } = await client.query<{ n: string }>('select 1::text as n');
    expect(rows).toEqual([{ n: '1' }]);
  });

  it('rejects the query when the connection is lost, however it is lost', async () => {
    const losses: ((client: Client) => Promise<void>)[] = [
      async () =>
        terminateBackend(suite.server, await walsenderPid(suite.server, SLOT)),
      async (client) => destroySocket(client),
    ];
    for (const lose of losses) {
      const { client, source } = await session();
      const { ended } = await stream(client);
      const end = new Promise((resolve) => client.once('end', resolve));
      await lose(client);
      await expect(ended).rejects.toBeInstanceOf(Error);
      await end;
      await source.close();
    }
  });

  it('ends a connection attempt when the socket is destroyed', async () => {
    const source = await suite.database();
    const client = new pg.Client(source.connection);
    client.on('error', () => {});
    const connecting = client.connect();
    destroySocket(client);
    await expect(connecting).rejects.toBeInstanceOf(Error);
  });

  it('ends a connection attempt when the answer cannot be parsed, once the parser is contained', async () => {
    const port = await freePort();
    const gssapi = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 7]);
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => socket.write(gssapi));
    }).listen(port, '127.0.0.1');
    onTestFinished(() => void server.close());
    const client = new pg.Client({ host: '127.0.0.1', port, user: 'u' });
    client.on('error', () => {});
    containParser(client);
    await expect(client.connect()).rejects.toThrow('cannot be read');
  });

  it('reports a notice with severity, SQLSTATE and source file beside the stream', async () => {
    const { client } = await session();
    const notice = new Promise<unknown>((resolve) =>
      client.on('notice', ({ code, severity, file }) =>
        resolve([severity, code, file]),
      ),
    );
    await client.query(
      "do $$ begin raise warning 'w' using errcode = '55000'; end $$",
    );
    expect(await notice).toEqual(['WARNING', '55000', 'pl_exec.c']);
  });

  it('has no read timeout once it is lifted', async () => {
    const source = await suite.database();
    const client = new pg.Client({ ...source.connection, query_timeout: 150 });
    client.on('error', () => {});
    onTestFinished(() => client.end());
    await client.connect();
    await expect(client.query('select pg_sleep(1)')).rejects.toThrow(
      /timeout/i,
    );

    const lifted = new pg.Client({ ...source.connection, query_timeout: 150 });
    liftReadTimeout(lifted);
    lifted.on('error', () => {});
    onTestFinished(() => lifted.end());
    await lifted.connect();
    await lifted.query('select pg_sleep(0.4)');
  });

  it('reads rows as text once it is told so, though its settings say binary', async () => {
    const source = await suite.database();
    const answers: unknown[] = [];
    for (const prepare of [() => {}, readAsText]) {
      const settings = {
        ...source.connection,
        types: { getTypeParser: () => String },
        binary: true,
      };
      const client = new pg.Client(settings);
      prepare(client);
      await client.connect();
      const { rows } = await client.query<object>('select $1::int4 as n', [65]);
      answers.push(...rows);
      await client.end();
    }
    expect(answers).toEqual([{ n: '\0\0\0A' }, { n: '65' }]);
  });
});
