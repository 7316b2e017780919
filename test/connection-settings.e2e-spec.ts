import { Socket } from 'node:net';
import type { ClientConfig } from 'pg';
import { describe, expect, it } from 'vitest';
import type { ConnectionOption } from '../lib/engine/options/pipeline-options.js';
import { capture, inserted } from './support/capture.js';
import { walsenderPid } from './support/logical-slot.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';

const suite = useServer({ settings: { wal_sender_timeout: '2s' } });

/** The settings of a connection over the Unix socket, or over TCP where there is none. */
function overSocket(source: TestDatabase): ClientConfig {
  const { socketFolder } = suite.server;
  return socketFolder === null
    ? { ...source.connection }
    : { ...source.connection, host: socketFolder };
}

describe('the option connection', () => {
  const forms: [string, (source: TestDatabase) => ConnectionOption][] = [
    ['a string', (source) => source.url],
    ['settings', (source) => ({ ...source.connection })],
    [
      'settings with a connection string',
      (source) => ({ connectionString: source.url }),
    ],
    ['a function that returns a string', (source) => () => source.url],
    [
      'an async function that returns settings',
      (source) => async () => ({ ...source.connection }),
    ],
    ['settings of a Unix socket', overSocket],
    [
      'a string of a Unix socket',
      (source) => {
        const { host, port, user, password, database } = overSocket(source);
        const place = encodeURIComponent(host ?? '');
        return `postgresql://${user}:${String(password)}@${place}:${port}/${database}`;
      },
    ],
  ];

  it.each(forms)('may be %s', async (_, connectionOf) => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline, applied } = capture(source, {
      target,
      connection: connectionOf(source),
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1]);
  });

  it('names pipeline and library to the server', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline } = capture(source, { target });
    pipeline.start();
    await pipeline.whenStreaming();
    const pid = await walsenderPid(suite.server, pipeline.options.slotName);
    const rows = await suite.server.query(
      'select application_name from pg_stat_activity where pid = $1',
      [pid],
    );
    expect(rows).toEqual([{ application_name: 'nestjs-replicant test' }]);
  });
});

describe('every session', () => {
  it('has TCP keepalive on, so that nobody in between takes an idle one for dead (C08)', async () => {
    const { source, target } = await sourceAndTarget(
      suite,
      `create type mood as enum ('ok');
       create table t(id int primary key, moods mood[]); create publication p for table t`,
    );
    /** Milliseconds of silence before the system asks; `null` where it was not told to. */
    const kept = new Map<Socket, number | null>();
    const { pipeline } = capture(source, {
      target,
      connection: {
        ...source.connection,
        stream: () => {
          const socket = new Socket();
          const setKeepAlive = socket.setKeepAlive.bind(socket);
          kept.set(socket, null);
          socket.setKeepAlive = (enable, delay) => {
            kept.set(socket, enable === true ? (delay ?? 0) : null);
            return setKeepAlive(enable, delay);
          };
          return socket;
        },
      },
    });
    pipeline.start();
    await pipeline.whenStreaming();
    const first = kept.size;
    // The type is looked up on a session of its own.
    await source.query(`insert into t values (1, '{ok}')`);
    await pipeline.caughtUp();
    expect(kept.size).toBeGreaterThan(first);
    expect(new Set(kept.values())).toEqual(new Set([30_000]));
  });
});

describe('timeouts of statements', () => {
  /** Longer than any of the timeouts below. */
  const QUIET_MS = 700;

  async function streamsOn(
    source: TestDatabase,
    target: TestDatabase,
    connection: ConnectionOption,
  ): Promise<void> {
    const { pipeline, applied, checkpoints } = capture(source, {
      target,
      connection,
    });
    // The session waits for the sink before it streams.
    const load = checkpoints.load.bind(checkpoints);
    checkpoints.load = async () => {
      await pause(QUIET_MS);
      return load();
    };
    let reconnects = 0;
    pipeline.on('reconnect', () => (reconnects += 1));
    pipeline.start();
    await pipeline.whenStreaming();
    const pid = await walsenderPid(suite.server, pipeline.options.slotName);
    await pause(QUIET_MS);
    await source.query('insert into t values (1)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1]);
    expect(await walsenderPid(suite.server, pipeline.options.slotName)).toBe(
      pid,
    );
    expect(reconnects).toBe(0);
  }

  it('in the connection settings do not end the stream', async () => {
    const { source, target } = await sourceAndTarget(suite);
    await streamsOn(source, target, {
      ...source.connection,
      query_timeout: 400,
      statement_timeout: 400,
      lock_timeout: 400,
      idle_in_transaction_session_timeout: 400,
    });
  });

  it('in a connection string do not end the stream', async () => {
    const { source, target } = await sourceAndTarget(suite);
    await streamsOn(
      source,
      target,
      `${source.url}?query_timeout=400&statement_timeout=400&options=-c%20idle_session_timeout%3D400`,
    );
  });

  it('of the role and the database do not end the stream', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const names = ['statement_timeout', 'lock_timeout', 'idle_session_timeout'];
    if (suite.server.majorVersion >= 17) names.push('transaction_timeout');
    for (const name of names)
      await source.query(
        `alter database "${source.name}" set ${name} = '400ms'`,
      );
    await streamsOn(source, target, { ...source.connection });
  });
});

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
