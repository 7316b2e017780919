import type { Client } from 'pg';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { sees } from '../lib/engine/snapshot/incremental/visibility.js';
import {
  HandDrivenWindow,
  transactionsOf,
} from './support/hand-driven-window.js';
import { nearEndOfXids, useUpXids } from './support/next-xid.js';
import { PostgresServer } from './support/postgres-server.js';
import { PrimaryAndStandby } from './support/standby.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer();
const SCHEMA =
  "create table t(id int primary key, v text); create publication p for table t; insert into t select i, 'old' from generate_series(1, 3) i";
const OLD = ['1:old', '2:old', '3:old'];
const FIRST_THAT_DECODES_ON_STANDBYS = 16;

async function createSlot(source: TestDatabase): Promise<string> {
  const slot = `slot_${source.name}`;
  await source.query(
    `select pg_create_logical_replication_slot($1, 'pgoutput')`,
    [slot],
  );
  return slot;
}

async function tracked(source: TestDatabase): Promise<HandDrivenWindow> {
  const stage = await HandDrivenWindow.over(source, await createSlot(source));
  stage.track();
  return stage;
}

/** A session in whose transaction something was done. */
async function began(
  source: TestDatabase,
  statement: string,
): Promise<{ client: Client; xid: number }> {
  const client = await source.connect();
  await client.query('begin');
  await client.query(statement);
  const { rows } = await client.query<{ xid: string }>(
    'select pg_current_xact_id()::xid::text as xid',
  );
  return { client, xid: Number(rows[0]?.xid) };
}

describe('on a primary', () => {
  let source: TestDatabase;

  beforeEach(async () => {
    source = await suite.database();
    await source.query(SCHEMA);
  });

  it('a row that an open transaction has changed is left out once its commit was streamed', async () => {
    const stage = await tracked(source);
    const { client } = await began(
      source,
      `update t set v = 'new' where id = 2`,
    );
    const chunk = await stage.read();
    expect(Array.from(chunk.rows, (row) => row.join(':'))).toEqual(OLD);
    await client.query('commit');
    await stage.stream();
    stage.add(chunk);
    await stage.catchUp(chunk);
    expect(stage.handedOver).toMatchObject([
      { changed: ['2'] },
      { chunk: ['1:old', '3:old'] },
    ]);
    await stage.readAndStream();
    expect(stage.lastChunk).toEqual(['1:old', '2:new', '3:old']);
  });

  it('savepoints count as the transaction they are in', async () => {
    const stage = await tracked(source);
    const { client, xid } = await began(source, 'savepoint a');
    await client.query(
      `update t set v = 'a' where id = 1; savepoint b; update t set v = 'b' where id = 2; release b; savepoint c; delete from t where id = 3; rollback to c`,
    );
    const { rows } = await client.query<{ xmin: string }>(
      'select xmin from t where id = 2',
    );
    expect(Number(rows[0]?.xmin)).toBeGreaterThan(xid);
    const chunk = await stage.read();
    await client.query('commit');
    await stage.stream();
    stage.add(chunk);
    await stage.catchUp(chunk);
    expect(stage.handedOver).toEqual([
      { changed: ['1', '2'], xid },
      { chunk: ['3:old'] },
    ]);
    await stage.readAndStream();
    expect(stage.lastChunk).toEqual(['1:a', '2:b', '3:old']);
  });

  it('a prepared transaction is in progress until it is committed', async () => {
    const stage = await tracked(source);
    const { client, xid } = await began(source, 'delete from t where id = 1');
    await client.query(`prepare transaction '${source.name}'`);
    await source.query(`update t set v = 'new' where id = 3`);
    const chunk = await stage.read();
    expect(sees(chunk.visible, xid)).toBe(false);
    await source.query(`commit prepared '${source.name}'`);
    await stage.stream();
    stage.add(chunk);
    await stage.catchUp(chunk);
    expect(stage.changed).toEqual(['3', '1']);
    expect(stage.lastChunk).toEqual(['2:old', '3:new']);
    await stage.readAndStream();
    expect(stage.lastChunk).toEqual(['2:old', '3:new']);
  });

  it('a transaction that is rolled back leaves the row in the chunk', async () => {
    const stage = await tracked(source);
    const { client } = await began(source, 'delete from t where id = 1');
    const chunk = await stage.read();
    await client.query('rollback');
    stage.add(chunk);
    await stage.catchUp(chunk);
    expect(stage.lastChunk).toEqual(OLD);
  });
});

describe('while a synchronous standby is absent', () => {
  let source: TestDatabase;

  beforeEach(async () => {
    source = await suite.database();
    await source.query(SCHEMA);
  });

  async function wait(standbys: string): Promise<void> {
    await suite.server.query(
      `alter system set synchronous_standby_names = '${standbys}'`,
    );
    await suite.server.query('select pg_reload_conf()');
    await waitFor(
      async () => {
        const [row] = await suite.server.query<{ is: boolean }>(
          `select current_setting('synchronous_standby_names') = $1 as is`,
          [standbys],
        );
        return row?.is;
      },
      { message: 'the setting' },
    );
  }

  async function withoutStandby(): Promise<void> {
    onTestFinished(() => wait(''));
    await wait('nobody');
  }

  /** Does not wait for the standby. */
  async function locally(statement: string): Promise<void> {
    await source.query(
      `begin; set local synchronous_commit = local; ${statement}; commit`,
    );
  }

  /** Commits and waits for the standby. */
  async function commits(statement: string) {
    const { client, xid } = await began(source, statement);
    const committed = client.query('commit');
    await waitFor(
      async () =>
        (
          await source.query(
            `select from pg_stat_activity where wait_event = 'SyncRep' and datname = current_database()`,
          )
        ).length === 1,
      { message: 'the commit to wait' },
    );
    return { xid, committed };
  }

  it('a commit that is streamed before it is visible wins over the row of a later chunk', async () => {
    const stage = await tracked(source);
    await withoutStandby();
    const { xid, committed } = await commits(
      `update t set v = 'new' where id = 2`,
    );
    await stage.stream();
    expect(stage.changed).toEqual(['2']);

    // Long after the sink was given the change.
    const chunk = await stage.read();
    expect(Array.from(chunk.rows, (row) => row.join(':'))).toEqual(OLD);
    stage.add(chunk);
    await stage.catchUp(chunk);
    expect(stage.lastChunk).toEqual(['1:old', '3:old']);
    await locally(`update t set v = 'newer' where id = 1`);
    await stage.readAndStream();
    expect(stage.lastChunk).toEqual(['1:newer', '3:old']);

    await wait('');
    await committed;
    await stage.readAndStream();
    expect(stage.lastChunk).toEqual(['1:newer', '2:new', '3:old']);
    expect(stage.window.changedBytes).toBe(0);
    expect(sees((await transactionsOf(source)).visible, xid)).toBe(true);
  });

  it('what was streamed before tracking began is seen by every chunk that is used: the next transaction id says which, and no xmax', async () => {
    const stage = await HandDrivenWindow.over(source, await createSlot(source));
    await withoutStandby();
    const { xid, committed } = await commits(
      `update t set v = 'new' where id = 2`,
    );
    await stage.stream();
    const { next, visible } = await transactionsOf(source);
    await locally(`update t set v = 'newer' where id = 1`);
    const chunk = await stage.read();
    // It sees everything below that xmax, and not what was streamed.
    expect(chunk.visible.xmin).toBeGreaterThanOrEqual(visible.xmax);
    expect(sees(chunk.visible, xid)).toBe(false);
    stage.track(next);
    expect(stage.add(chunk)).toBe('stale');

    await wait('');
    await committed;
    expect(await stage.readAndStream()).toBe('pending');
    expect(stage.lastChunk).toEqual(['1:newer', '2:new', '3:old']);
  });

  it('a new slot does not bring a commit that no snapshot sees yet: its first chunks wait for it too', async () => {
    await withoutStandby();
    const first = await began(source, 'select pg_current_xact_id()');
    const creator = await source.connect();
    const slot = `slot_${source.name}`;
    const created = creator.query(
      `select pg_create_logical_replication_slot($1, 'pgoutput')`,
      [slot],
    );
    const waitsFor = (xid: number): Promise<unknown> =>
      waitFor(
        async () =>
          (
            await source.query(
              `select from pg_locks where locktype = 'transactionid' and not granted and transactionid = $1`,
              [String(xid)],
            )
          ).length === 1,
        { message: `the slot to wait for ${xid}` },
      );
    await waitsFor(first.xid);
    const second = await began(source, 'select pg_current_xact_id()');
    await first.client.query('rollback');
    await waitsFor(second.xid);
    const { xid, committed } = await commits(
      `update t set v = 'new' where id = 2`,
    );
    await second.client.query('rollback');
    await created;

    const stage = await HandDrivenWindow.over(source, slot);
    const chunk = await stage.read();
    expect(sees(chunk.visible, xid)).toBe(false);
    stage.track((await transactionsOf(source)).next);
    expect(stage.add(chunk)).toBe('stale');
    await wait('');
    await committed;
    await stage.stream();
    expect(stage.changed).toEqual([]);
    expect(await stage.readAndStream()).toBe('pending');
    expect(stage.lastChunk).toEqual(['1:old', '2:new', '3:old']);
  });
});

it('on a standby, a transaction that was open on the primary wins although no snapshot tells it', async () => {
  const servers = await PrimaryAndStandby.start({ schema: SCHEMA });
  const { source, copy, primary } = servers;
  if (primary.majorVersion < FIRST_THAT_DECODES_ON_STANDBYS) return;
  const slot = `slot_${copy.name}`;
  let created = false;
  void copy
    .query(`select pg_create_logical_replication_slot($1, 'pgoutput')`, [slot])
    .then(() => (created = true));
  await waitFor(
    async () => {
      await primary.query('select pg_log_standby_snapshot()');
      return created;
    },
    { timeout: 30_000, message: 'the slot on the standby' },
  );
  const stage = await HandDrivenWindow.over(copy, slot);
  stage.track();
  const { client, xid } = await began(
    source,
    `update t set v = 'new' where id = 2`,
  );
  await source.query(`update t set v = 'newer' where id = 1`);
  await servers.caughtUp();
  const chunk = await stage.read();
  expect(Array.from(chunk.rows, (row) => row.join(':'))).toEqual([
    '1:newer',
    '2:old',
    '3:old',
  ]);
  expect(chunk.visible.inRecovery).toBe(true);
  expect([...chunk.visible.inProgress]).toEqual([]);
  expect(chunk.visible.xmax).toBeGreaterThan(BigInt(xid));

  await client.query('commit');
  await servers.caughtUp();
  await stage.stream();
  stage.add(chunk);
  await stage.catchUp(chunk);
  expect(stage.changed).toEqual(['1', '2']);
  // Of the first it is not known whether the chunk sees it; the stream has brought it.
  expect(stage.lastChunk).toEqual(['3:old']);
  await stage.readAndStream();
  expect(stage.lastChunk).toEqual(['1:newer', '2:new', '3:old']);
}, 120_000);

it('where transaction ids go over 2^32, changes of both sides win over chunks that do not see them', async () => {
  const server = await PostgresServer.start();
  onTestFinished(() => server.remove(), 60_000);
  await nearEndOfXids(server);
  const source = await server.createDatabase();
  await source.query(SCHEMA);
  const stage = await tracked(source);
  await useUpXids(server, 10n);

  const before = await began(source, `update t set v = 'new' where id = 1`);
  expect(before.xid).toBeGreaterThan(2 ** 32 - 20);
  const early = await stage.read();
  expect(early.visible.xmax).toBeLessThan(2n ** 32n);
  for (let i = 0; i < 20; i++)
    await source.query('select pg_current_xact_id()');
  const after = await began(source, `update t set v = 'new' where id = 2`);
  expect(after.xid).toBeLessThan(50);
  await source.query(`update t set v = 'newer' where id = 3`);

  const late = await stage.read();
  expect(late.visible.xmax).toBeGreaterThan(2n ** 32n);
  expect([before, after].map(({ xid }) => sees(late.visible, xid))).toEqual([
    false,
    false,
  ]);
  await before.client.query('commit');
  await after.client.query('commit');
  stage.add(early);
  await stage.stream();
  stage.add(late);
  await stage.catchUp(late);
  expect(stage.handedOver).toMatchObject([
    { chunk: OLD },
    { changed: ['3'] },
    { changed: ['1'], xid: before.xid },
    { changed: ['2'], xid: after.xid },
    { chunk: ['3:newer'] },
  ]);
  await stage.readAndStream();
  expect(stage.lastChunk).toEqual(['1:new', '2:new', '3:newer']);
}, 120_000);
