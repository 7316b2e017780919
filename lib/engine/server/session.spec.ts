import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { freePort } from '../../../test/support/free-port.js';
import type { ConnectionOption } from '../options/pipeline-options.js';
import { judgeError } from './error-classes.js';
import { ANSWER_TIMEOUT_MS, openClient } from './session.js';

const AUTHENTICATION_OK = [0x52, 0, 0, 0, 8, 0, 0, 0, 0];
const READY_FOR_QUERY = [0x5a, 0, 0, 0, 5, 0x49];

/** Something that listens where a server should be, and gives one answer to the first packet of each connection. */
async function stranger(answer: readonly number[]): Promise<{
  readonly connection: {
    host: string;
    port: number;
    user: string;
    database: string;
  };
  readonly sockets: readonly Socket[];
}> {
  const sockets: Socket[] = [];
  const port = await freePort();
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    socket.once('data', () => socket.write(Buffer.from(answer)));
  });
  await once(server.listen(port, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return {
    connection: { host: '127.0.0.1', port, user: 'u', database: 'd' },
    sockets,
  };
}

/** Why no session comes about. */
async function refusal(connection: ConnectionOption): Promise<string> {
  try {
    await openClient(
      {
        connection,
        applicationName: 'test',
        signal: new AbortController().signal,
      },
      'sql',
    );
    return 'a session';
  } catch (error) {
    return judgeError(error, 'connecting').reason;
  }
}

describe('a session with what is no PostgreSQL server', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it.each([
    ['asks for GSSAPI', [0x52, 0, 0, 0, 8, 0, 0, 0, 7]],
    ['asks for nothing that can be read', [0x52, 0, 0, 0, 5, 0]],
    [
      'describes columns that are not there',
      [...AUTHENTICATION_OK, 0x54, 0, 0, 0, 6, 0, 9],
    ],
  ])('is given up, and ends no process, when it %s', async (_, answer) => {
    const { connection } = await stranger(answer);
    expect(await refusal(connection)).toMatch(
      /^the server's answer cannot be read \((Range)?Error\)$/,
    );
  });

  it('is given up when it never answers, also where settings name no time-outs', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const { connection, sockets } = await stranger([]);
    const refused = refusal({
      ...connection,
      connectionTimeoutMillis: undefined,
    });
    await vi.waitFor(() => expect(sockets).toHaveLength(1));
    await vi.advanceTimersByTimeAsync(ANSWER_TIMEOUT_MS);
    expect(await refused).toBe('connection lost (Error)');
  });

  it('is given up when it falls silent once the client has logged in', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const { connection, sockets } = await stranger([
      ...AUTHENTICATION_OK,
      ...READY_FOR_QUERY,
    ]);
    const refused = refusal(connection);
    await vi.waitFor(() => expect(sockets[0]?.bytesRead).toBeGreaterThan(200));
    await vi.advanceTimersByTimeAsync(ANSWER_TIMEOUT_MS);
    expect(await refused).toBe('connection lost (Error)');
  });
});

describe('a connection function', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it('that never answers is given up', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const refused = refusal(() => new Promise(() => {}));
    await vi.advanceTimersByTimeAsync(ANSWER_TIMEOUT_MS);
    expect(await refused).toBe('the connection function gave no settings');
  });

  it('leaves no timer behind when the pipeline stops meanwhile', async () => {
    const abort = new AbortController();
    const timers = (): number =>
      process.getActiveResourcesInfo().filter((name) => name === 'Timeout')
        .length;
    const before = timers();
    const opening = openClient(
      {
        connection: () => new Promise(() => {}),
        applicationName: 'test',
        signal: abort.signal,
      },
      'sql',
    );
    expect(timers()).toBe(before + 1);
    abort.abort();
    await expect(opening).rejects.toThrow('gave no settings');
    expect(timers()).toBe(before);
  });

  it('that returns nothing connects to nowhere, and not to the defaults of pg', async () => {
    const refused: unknown = await Reflect.apply(refusal, null, [() => {}]);
    expect(refused).toBe('the connection function gave no settings');
  });
});
