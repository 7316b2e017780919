import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { judgeError } from '../lib/engine/server/error-classes.js';
import type { SessionTarget } from '../lib/engine/server/session.js';
import { CopySession } from '../lib/engine/snapshot/copy-session.js';
import type { Page, RawRow } from '../lib/engine/snapshot/raw-row.js';
import { terminateBackend } from './support/logical-slot.js';
import { present } from './support/present.js';
import { useServer } from './support/suite.js';
import { TcpProxy } from './support/tcp-proxy.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer();
const NAME = 'reader';
const LIMITS = { rows: 1_000, bytes: 4 * 1024 * 1024 };
const MEGABYTE = 1024 * 1024;

async function opened(
  database: TestDatabase,
  target: Partial<SessionTarget> = {},
): Promise<CopySession> {
  const session = await CopySession.open({
    connection: database.url,
    applicationName: NAME,
    signal: new AbortController().signal,
    ...target,
  });
  onTestFinished(() => session.destroy());
  return session;
}

async function all(pages: AsyncIterable<Page>): Promise<RawRow[]> {
  const rows: RawRow[] = [];
  for await (const page of pages) rows.push(...page.rows);
  return rows;
}

/** Server processes of the reader. */
async function backends(database: TestDatabase): Promise<number[]> {
  const rows = await database.query<{ pid: number }>(
    'select pid from pg_stat_activity where application_name = $1',
    [NAME],
  );
  return rows.map(({ pid }) => pid);
}

async function gone(database: TestDatabase): Promise<void> {
  await waitFor(async () => (await backends(database)).length === 0, {
    // The server looks every 10 s whether the client of a statement is still there.
    timeout: 15_000,
    message: 'the session to end',
  });
}

function series(count: number): string {
  return `copy (select g from pg_catalog.generate_series(1, ${count}) g) to stdout`;
}

describe('a session that reads by COPY', () => {
  it('reads every value as it is', async () => {
    const database = await suite.database();
    await database.query(
      'create table t (n serial primary key, a text, b text)',
    );
    const character = fc.oneof(
      fc.constantFrom('\\', 'N', 'n', '.', '\b', '\f', '\n', '\r', '\t', '\v'),
      fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
    );
    const value = fc.option(
      fc
        .string({ unit: character, maxLength: 12 })
        .filter((text) => !/[\0\uD800-\uDFFF]/u.test(text)),
    );
    const rows = fc.sample(fc.tuple(value, value), 500);
    await database.query(
      'insert into t (a, b) select * from unnest($1::text[], $2::text[])',
      [rows.map(([a]) => a), rows.map(([, b]) => b)],
    );
    const session = await opened(database);
    const read = await all(
      session.copy(
        'copy (select a, b from public.t order by n) to stdout',
        LIMITS,
      ),
    );
    expect(read).toEqual(rows);
  });

  it.each([
    [0, []],
    [1, [1]],
    [999, [999]],
    [1000, [1000]],
    [1001, [1000, 1]],
    [2000, [1000, 1000]],
  ])('makes pages of %i rows, and can go on', async (count, sizes) => {
    const session = await opened(await suite.database());
    for (let round = 0; round < 2; round++) {
      const pages: number[] = [];
      for await (const { rows } of session.copy(series(count), LIMITS))
        pages.push(rows.length);
      expect(pages).toEqual(sizes);
      expect(await session.commands.query('select 1 as one')).toEqual([
        { one: '1' },
      ]);
    }
    await session.close();
  });

  it('reads on where pages are small and chunks of the network hold many', async () => {
    const session = await opened(await suite.database());
    const pages = session.copy(series(10_000), { rows: 7, bytes: 100_000 });
    expect(await all(pages)).toHaveLength(10_000);
  });

  it('reads large rows, and has no more than a page of them while the consumer works (K12)', async () => {
    const proxy = await TcpProxy.start(suite.server.connection);
    onTestFinished(() => proxy.close());
    const database = await suite.database();
    let passed = 0;
    proxy.tap = (bytes, direction) => {
      if (direction === 'server-to-client') passed += bytes.length;
    };
    const session = await opened(database, {
      connection: {
        ...database.connection,
        host: proxy.host,
        port: proxy.port,
      },
    });
    const sql = `copy (select g, pg_catalog.repeat('x', ${MEGABYTE}) from pg_catalog.generate_series(1, 100) g) to stdout`;
    let rows = 0;
    let ahead = 0;
    for await (const page of session.copy(sql, LIMITS)) {
      rows += page.rows.length;
      expect(page.rows).toHaveLength(4);
      // What else passes the proxy now lies in the buffers of the kernel or of Node.
      const before = passed;
      await quiet(() => passed);
      ahead = Math.max(ahead, passed - before);
    }
    expect(rows).toBe(100);
    expect(ahead).toBeLessThan(16 * MEGABYTE);
  });

  it('gives a row that is larger than a page alone', async () => {
    const session = await opened(await suite.database());
    const sql = `copy (select pg_catalog.repeat('x', n) from (values (10), (5000), (10)) v (n)) to stdout`;
    const sizes: number[] = [];
    for await (const page of session.copy(sql, { rows: 100, bytes: 1_000 }))
      sizes.push(page.bytes);
    expect(sizes).toEqual([5010, 10]);
  });

  it('waits for the first row longer than the time-outs of a connection string and of the server (K09)', async () => {
    const database = await suite.database();
    await database.query(
      `alter database "${database.name}" set statement_timeout = '200ms'`,
    );
    const session = await opened(database, {
      connection: `${database.url}?query_timeout=200&statement_timeout=200`,
    });
    const sql = 'copy (select 1 from pg_catalog.pg_sleep(1)) to stdout';
    expect(await all(session.copy(sql, LIMITS))).toEqual([['1']]);
  });

  it('reads no row of a table with row security, but refuses', async () => {
    const database = await suite.database();
    await database.query(
      `create role "${database.name}" login password 'p';
       create table t (id int); insert into t values (1);
       alter table t enable row level security; grant select on t to "${database.name}"`,
    );
    onTestFinished(async () => {
      await database.query(`drop owned by "${database.name}"`);
      await database.query(`drop role "${database.name}"`);
    });
    const session = await opened(database, {
      connection: {
        ...database.connection,
        user: database.name,
        password: 'p',
      },
    });
    const read = all(session.copy('copy public.t to stdout', LIMITS));
    await expect(read).rejects.toMatchObject({ code: '42501' });
  });

  it('goes on after an error of the server', async () => {
    const session = await opened(await suite.database());
    const sql =
      'copy (select 1 / (g - 5) from pg_catalog.generate_series(1, 9) g) to stdout';
    await expect(all(session.copy(sql, LIMITS))).rejects.toMatchObject({
      code: '22012',
    });
    expect(await all(session.copy(series(3), LIMITS))).toHaveLength(3);
  });

  it('rejects when the connection is lost in the middle', async () => {
    const database = await suite.database();
    const session = await opened(database);
    const pages = session.copy(series(1_000_000), LIMITS);
    await pages.next();
    await terminateBackend(database, present((await backends(database))[0]));
    const error: unknown = await all(pages).catch((reason: unknown) => reason);
    expect(judgeError(error, 'streaming').class).toBe('transient');
    await expect(session.lost).rejects.toThrow('terminat');
  });

  it('tells the loss of a connection that does nothing', async () => {
    const database = await suite.database();
    const session = await opened(database);
    await terminateBackend(database, present((await backends(database))[0]));
    await expect(session.lost).rejects.toMatchObject({ code: '57P01' });
  });

  it('is torn down when its signal is aborted, while it reads and while the consumer works', async () => {
    const database = await suite.database();
    for (const sql of [
      series(1_000_000),
      'copy (select pg_catalog.pg_sleep(60)) to stdout',
    ]) {
      const abort = new AbortController();
      const session = await opened(database, { signal: abort.signal });
      const pages = session.copy(sql, LIMITS);
      const first = pages.next();
      if (sql.includes('series')) await first;
      abort.abort();
      await expect(Promise.all([first, all(pages)])).rejects.toThrow(
        'Connection terminated',
      );
      await session.close();
    }
    await gone(database);
  }, 90_000);

  it('ends the connection when the consumer leaves early', async () => {
    const database = await suite.database();
    const session = await opened(database);
    for await (const page of session.copy(series(1_000_000), LIMITS)) {
      expect(page.rows).toHaveLength(1_000);
      break;
    }
    await gone(database);
  });

  it('notices a connection that died without a word while it reads, and waits for a server that takes long', async () => {
    const database = await suite.database();
    const proxy = await TcpProxy.start(suite.server.connection);
    onTestFinished(() => proxy.close());
    let connected = 0;
    const dying = await opened(database, {
      connection: () => {
        connected += 1;
        return connected === 1
          ? { ...database.connection, port: proxy.port }
          : database.url;
      },
    });
    const patient = await opened(database);
    const slow = all(
      patient.copy('copy (select pg_catalog.pg_sleep(28)) to stdout', LIMITS),
    );
    const pages = dying.copy(series(10_000_000), LIMITS);
    await pages.next();
    proxy.halfOpen('server-to-client');
    const began = performance.now();
    await expect(all(pages)).rejects.toThrow('Connection terminated');
    expect(performance.now() - began).toBeLessThan(27_000);
    proxy.reset();
    expect(await slow).toHaveLength(1);
  }, 60_000);

  it('waits for a row, for a lock and for a large row on a slow network, also where the server does not track what its sessions do', async () => {
    const database = await suite.database();
    await database.query(
      `create table t (id int); alter database "${database.name}" set track_activities = off`,
    );
    const proxy = await TcpProxy.start(suite.server.connection);
    onTestFinished(() => proxy.close());
    proxy.throttle(MEGABYTE);
    let connected = 0;
    const behindProxy = await opened(database, {
      connection: () => {
        connected += 1;
        return connected === 1
          ? { ...database.connection, port: proxy.port }
          : database.url;
      },
    });
    const large = all(
      behindProxy.copy(
        `copy (select pg_catalog.repeat('x', ${28 * MEGABYTE})) to stdout`,
        LIMITS,
      ),
    );
    const searching = await opened(database);
    const late = all(
      searching.copy('copy (select pg_catalog.pg_sleep(28)) to stdout', LIMITS),
    );
    const holder = await database.connect();
    await holder.query('begin; lock table t');
    const locking = await opened(database);
    const locked = locking.commands.queryPatiently(
      'begin; lock table public.t in access share mode',
    );
    // It may fail first.
    locked.catch(() => {});
    expect(await Promise.all([large, late])).toMatchObject([
      { length: 1 },
      { length: 1 },
    ]);
    await holder.query('commit');
    await locked;
  }, 60_000);
});

/** Waits until a figure does not change any more. */
async function quiet(figure: () => number): Promise<void> {
  let last = -1;
  let same = 0;
  await waitFor(() => {
    same = figure() === last ? same + 1 : 0;
    last = figure();
    return same === 4;
  });
}
