import { existsSync } from 'node:fs';
import { Client } from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  compareTables,
  countApplied,
  NO_DIFFERENCE,
} from './support/compare-tables.js';
import { copy, copyResult } from './support/copy.js';
import { changesIn, streaming } from './support/delivered.js';
import { applyByKey } from './support/keyed-mirror.js';
import { confirmedUpTo, currentLsn, readSlot } from './support/logical-slot.js';
import { PostgresServer } from './support/postgres-server.js';
import { useServer } from './support/suite.js';
import { TcpProxy } from './support/tcp-proxy.js';
import { waitFor } from './support/wait-for.js';

describe('the server of the tests', () => {
  const suite = useServer();

  it('keeps its data and its port over a restart, an immediate stop and a kill', async () => {
    const database = await suite.database();
    await database.query('CREATE TABLE kept (id int PRIMARY KEY)');
    const { port } = suite.server.connection;
    const interruptions = [
      () => suite.server.restart('fast'),
      () => suite.server.restart('immediate'),
      async () => {
        await suite.server.kill();
        expect(suite.server.running).toBe(false);
        await suite.server.startAgain();
      },
    ];
    for (const [id, interrupt] of interruptions.entries()) {
      const before = suite.server.pid;
      await database.query('INSERT INTO kept VALUES ($1)', [id]);
      await interrupt();
      expect(suite.server.pid).not.toBe(before);
      expect(suite.server.connection.port).toBe(port);
    }
    expect(await database.query('SELECT id FROM kept ORDER BY id')).toEqual([
      { id: 0 },
      { id: 1 },
      { id: 2 },
    ]);
  }, 60_000);

  it('runs the major version that was asked for', async () => {
    const [row] = await suite.server.query<{ server_version_num: string }>(
      'SHOW server_version_num',
    );
    expect(Math.floor(Number(row?.server_version_num) / 10_000)).toBe(
      suite.server.majorVersion,
    );
  });

  it('drops a database with its slots and prepared transactions', async () => {
    const database = await suite.server.createDatabase();
    await database.query(
      `SELECT pg_create_logical_replication_slot('left_over', 'pgoutput')`,
    );
    await database.query(
      `BEGIN; CREATE TABLE pending (); PREPARE TRANSACTION 'left over'`,
    );
    await database.close();
    expect(await readSlot(suite.server, 'left_over')).toBeNull();
    expect(
      await suite.server.query('SELECT 1 FROM pg_database WHERE datname = $1', [
        database.name,
      ]),
    ).toEqual([]);
  });

  it('reads positions of slots', async () => {
    const database = await suite.database();
    await database.query(
      `SELECT pg_create_logical_replication_slot('positions', 'pgoutput')`,
    );
    const lsn = await currentLsn(database);
    await database.query(
      `SELECT pg_replication_slot_advance('positions', pg_current_wal_insert_lsn())`,
    );
    await confirmedUpTo(database, 'positions', lsn);
    expect(
      (await readSlot(database, 'positions'))?.confirmedFlushLsn,
    ).toBeGreaterThanOrEqual(lsn);
  });

  it('says what the server said when it does not start', async () => {
    await expect(
      PostgresServer.start({ settings: { max_wal_senders: 'many' } }),
    ).rejects.toThrow(/invalid value for parameter "max_wal_senders"/);
  }, 30_000);
});

it('serves TLS with a certificate that a client can verify, and leaves nothing behind', async () => {
  const server = await PostgresServer.start({ tls: true });
  onTestFinished(() => server.remove());
  const client = new Client({
    ...server.connection,
    database: 'postgres',
    ssl: { ca: server.certificate ?? '' },
    enableChannelBinding: true,
  });
  await client.connect();
  const { rows } = await client.query(
    'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()',
  );
  await client.end();
  expect(rows).toEqual([{ ssl: true }]);
  await server.remove();
  expect(existsSync(server.dataFolder)).toBe(false);
}, 60_000);

describe('the counts of the tests', () => {
  const suite = useServer();

  it('tell rows that are missing, extra or different, with a key and without', async () => {
    const source = await suite.database();
    const target = await suite.database('target');
    for (const database of [source, target]) {
      await database.query(
        `create table keyed(id int primary key, v text); create table bare(v text);
         create publication p for table keyed, bare;
         insert into keyed select n, 'v' from generate_series(1, 9) as n;
         insert into bare values ('same'), ('same')`,
      );
    }
    await target.query('delete from keyed where id <= 3');
    await source.query('delete from keyed where id = 9');
    await target.query('update keyed set v = null where id in (4, 5)');
    await target.query(`insert into bare values ('same'), ('other')`);
    await source.query(`insert into bare values ('lost')`);
    expect(await compareTables(source, target)).toEqual({
      missing: 4,
      extra: 3,
      different: 2,
    });
  });

  it('tell transactions that a ledger has more than once, for each slot by itself', async () => {
    const target = await suite.database();
    await target.query(
      `create table ledger(slot_name text, commit_lsn pg_lsn);
       insert into ledger values ('a', '0/1'), ('a', '0/2'), ('a', '0/2'), ('a', '0/3'), ('a', '0/3'), ('b', '0/1')`,
    );
    expect(await countApplied(target)).toEqual({ applied: 4, appliedTwice: 2 });
  });

  it('tell transactions that a copy applied more than once, and not those that it skipped', async () => {
    const source = await suite.database();
    const target = await suite.database('target');
    await copy(source, { target });
    await target.query(
      `insert into ledger values ('0/1', 'applied', 1), ('0/2', 'applied', 1), ('0/2', 'applied', 1), ('0/1', 'skipped', 1)`,
    );
    expect(await copyResult(target)).toEqual({
      ids: [],
      applied: 3,
      appliedTwice: 1,
      skipped: 1,
    });
  });
});

describe('a mirror by key', () => {
  const suite = useServer();

  it('is as it was after changes that come again', async () => {
    const schema = `
    create table t(id int primary key, v text, big text);
    alter table t alter big set storage external`;
    const { applied, run, source, target } = await streaming(suite, schema, {
      types: 'text',
    });
    await target.query(schema);
    const client = await target.connect();
    const apply = async (): Promise<void> => {
      for (const change of changesIn(applied)) await applyByKey(client, change);
    };
    await run(
      `insert into t select g, 'v', repeat('x', 9000) from generate_series(1, 5) g`,
    );
    await apply();
    applied.length = 0;
    await run(
      `update t set id = 11 where id = 1; insert into t values (1, 'new')`,
    );
    await run('update t set id = 21, v = null where id = 11');
    await run(
      `update t set v = 'moved' where id = 2; update t set id = 12 where id = 2`,
    );
    await run('delete from t where id in (3, 12)');
    for (let times = 0; times < 3; times += 1) {
      await apply();
      expect(await compareTables(source, target)).toEqual(NO_DIFFERENCE);
    }
  }, 60_000);
});

describe('the proxy of the tests', () => {
  const suite = useServer();

  async function through(): Promise<{ proxy: TcpProxy; client: Client }> {
    const proxy = await TcpProxy.start(suite.server.connection);
    onTestFinished(() => proxy.close());
    const client = new Client({
      ...suite.server.connection,
      port: proxy.port,
      database: 'postgres',
    });
    client.on('error', () => {});
    onTestFinished(() => client.end().catch(() => {}));
    await client.connect();
    return { proxy, client };
  }

  it('passes nothing while it is cut, and everything after', async () => {
    const { proxy, client } = await through();
    proxy.cut();
    const answer = client.query('SELECT 7 AS n');
    expect(await settled(answer, 150)).toBe(false);
    proxy.restore();
    expect((await answer).rows).toEqual([{ n: 7 }]);
  });

  it('hides the end of a client from the server while it is cut', async () => {
    const { proxy, client } = await through();
    const { rows } = await client.query<{ pid: number }>(
      'SELECT pg_backend_pid() AS pid',
    );
    const pid = rows[0]?.pid;
    const alive = async () =>
      (
        await suite.server.query(
          'SELECT 1 FROM pg_stat_activity WHERE pid = $1',
          [pid],
        )
      ).length === 1;
    proxy.cut();
    void client.end().catch(() => {});
    expect(
      await settled(
        waitFor(async () => !(await alive())),
        150,
      ),
    ).toBe(false);
    proxy.restore();
    await waitFor(async () => !(await alive()), {
      message: 'the backend to end',
    });
  });

  it('lets a request through and holds its answer when it is half open', async () => {
    const { proxy, client } = await through();
    await client.query('CREATE TEMP SEQUENCE seen');
    await suite.server.query('CREATE SEQUENCE passed');
    onTestFinished(
      async () => void (await suite.server.query('DROP SEQUENCE passed')),
    );
    proxy.halfOpen('server-to-client');
    const answer = client.query(`SELECT nextval('passed')`);
    await waitFor(async () => {
      const rows = await suite.server.query<{ is_called: boolean }>(
        'SELECT is_called FROM passed',
      );
      return rows[0]?.is_called;
    });
    expect(await settled(answer, 50)).toBe(false);
    proxy.restore();
    await answer;
  });

  it('delays without limiting the rate, and throttles', async () => {
    const { proxy, client } = await through();
    proxy.delay(300);
    let start = performance.now();
    await client.query('SELECT 1');
    expect(performance.now() - start).toBeGreaterThanOrEqual(599);
    proxy.delay(100);
    start = performance.now();
    await client.query(`SELECT repeat('x', 10000000)`);
    expect(performance.now() - start).toBeLessThan(7000);
    proxy.restore();
    proxy.throttle(100_000);
    start = performance.now();
    await client.query(`SELECT repeat('x', 50000)`);
    expect(performance.now() - start).toBeGreaterThanOrEqual(400);
  });

  it('resets connections and counts them', async () => {
    const { proxy, client } = await through();
    expect([proxy.accepted, proxy.open]).toEqual([1, 1]);
    const broken = new Promise<Error>((resolve) =>
      client.once('error', resolve),
    );
    proxy.reset();
    expect(await broken).toMatchObject({ code: 'ECONNRESET' });
    await waitFor(() => proxy.open === 0);
  });
});

async function settled(
  promise: Promise<unknown>,
  ms: number,
): Promise<boolean> {
  return Promise.race([
    promise.then(() => true),
    new Promise<boolean>((resolve) => setTimeout(() => resolve(false), ms)),
  ]);
}
