import { describe, expect, it, onTestFinished } from 'vitest';
import type { CommandSession } from '../lib/engine/server/session.js';
import {
  mayBeRolledBack,
  mayBeRolledBackSince,
} from '../lib/engine/server/subtransactions.js';
import type { Queryable } from './support/logical-slot.js';
import { nearEndOfXids, useUpXids } from './support/next-xid.js';
import { PostgresServer } from './support/postgres-server.js';
import { PrimaryAndStandby } from './support/standby.js';
import {
  insert,
  range,
  STREAMING_SERVER,
  streamingOn,
} from './support/streaming.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';

const suite = useServer({
  settings: { ...STREAMING_SERVER, wal_sender_timeout: '4s' },
});

/** More than 4,096 chunks of a large value, each of which is a change to the server: those go to its own disk first. */
const LARGE_ROW = `insert into t select 2, repeat('x', 9000000)`;

function emit(text: string): string {
  return `select pg_logical_emit_message(true, 'p', '${text}')`;
}

describe('a savepoint of which the server does not say that it was rolled back', () => {
  it.each([
    ['itself', `savepoint a; ${LARGE_ROW}`],
    ['one in it', `savepoint a; savepoint b; ${LARGE_ROW}; release b`],
  ])(
    'is left out, when %s had a row that the server wrote to disk',
    async (_, statements) => {
      const { source, pipeline, read, caughtUp } = await streamingOn(suite, {
        maxInflightBytes: 50_000_000,
      });
      await source.query('alter table t alter v set storage external');
      const warnings: string[] = [];
      pipeline.on('warning', ({ message }) => warnings.push(message));
      const client = await source.connect();
      await client.query(`begin; ${insert(1, 1)}; ${statements}`);
      // The server sends what is flushed, and only a commit flushes at once.
      await source.query(insert(9, 9));
      await caughtUp();
      expect(pipeline.status().streamed?.bytes).toBeGreaterThan(9_000_000);
      await client.query(`rollback to a; ${insert(101, 900)}; commit`);
      await caughtUp();
      expect(read.map(({ ids }) => ids)).toEqual([
        [9],
        [1, ...range(101, 900)],
      ]);
      expect(warnings).toContainEqual(
        expect.stringContaining('does not tell all that was rolled back'),
      );
    },
  );

  it('is left out, when it had messages, and what the server wrote to disk is not published', async () => {
    const { source, pipeline, read, caughtUp } = await streamingOn(suite, {
      maxInflightBytes: 50_000_000,
    });
    await source.query(
      'create table u(id int, v text); alter table u alter v set storage external',
    );
    const warnings: string[] = [];
    pipeline.on('warning', ({ message }) => warnings.push(message));
    const client = await source.connect();
    await client.query(
      `begin; ${insert(1, 1)}; savepoint a; ${emit('undone')}; insert into u select 2, repeat('x', 9000000)`,
    );
    await source.query(insert(9, 9));
    await caughtUp();
    expect(pipeline.status().streamed?.transactions).toBe(1);
    await client.query(
      `rollback to a; ${insert(101, 900)}; ${emit('kept')}; commit`,
    );
    await caughtUp();
    expect(read.map(({ ids, messages }) => [ids, messages])).toEqual([
      [[9], []],
      [[1, ...range(101, 900)], ['kept']],
    ]);
    expect(warnings).toContainEqual(
      expect.stringContaining('does not tell all that was rolled back'),
    );
  });

  it('costs others nothing: savepoints that were kept are delivered as they were streamed', async () => {
    const { source, pipeline, read, caughtUp } = await streamingOn(suite);
    const warnings: string[] = [];
    pipeline.on('warning', ({ message }) => warnings.push(message));
    await source.query(
      `begin; savepoint a; ${insert(1, 500)}; savepoint b; ${insert(501, 1000)}; release b; savepoint c; ${insert(1001, 1500)}; commit`,
    );
    await source.query(
      `begin; ${emit('first')}; ${insert(2001, 2500)}; savepoint a; ${insert(2501, 3000)}; rollback to a; ${insert(3001, 3500)}; commit`,
    );
    await caughtUp();
    expect(read.map(({ ids, messages }) => [ids, messages])).toEqual([
      [range(1, 1500), []],
      [[...range(2001, 2500), ...range(3001, 3500)], ['first']],
    ]);
    expect(warnings).toEqual([]);
  });
});

/** Savepoints of one transaction, and whether the server takes each for rolled back once it has committed. */
async function verdictsOf(source: TestDatabase): Promise<{
  readonly xids: readonly number[];
  readonly verdicts: readonly boolean[];
}> {
  const client = await source.connect();
  const xid = async (): Promise<number> => {
    await client.query('insert into t values (1)');
    const { rows } = await client.query<{ xid: string }>(
      'select xmin::text as xid from t where ctid = (select max(ctid) from t)',
    );
    return Number(rows[0]?.xid);
  };
  await client.query('begin; savepoint kept');
  const kept = await xid();
  await client.query('savepoint undone');
  const undone = await xid();
  await client.query('savepoint within');
  const within = await xid();
  await client.query('release within; rollback to undone; release undone');
  await client.query('savepoint last');
  const last = await xid();
  const xids = [kept, undone, within, last];
  const verdicts = (): Promise<boolean[]> =>
    Promise.all(xids.map((one) => rolledBack(source, [one])));
  // The commit may be sent before other sessions see it.
  expect(await verdicts()).toEqual([false, true, true, false]);
  await client.query('commit');
  return { xids, verdicts: await verdicts() };
}

function sessionOf(source: Queryable): CommandSession {
  const query = (
    text: string,
    values?: readonly unknown[],
  ): Promise<Record<string, string | null>[]> => source.query(text, values);
  return { query, queryPatiently: query };
}

function rolledBack(
  source: Queryable,
  subxids: readonly number[],
): Promise<boolean> {
  return mayBeRolledBack(sessionOf(source), subxids);
}

describe('the server', () => {
  it('knows what was rolled back, of one and of many', async () => {
    const source = await suite.database();
    await source.query('create table t(id int)');
    const { xids, verdicts } = await verdictsOf(source);
    expect(verdicts).toEqual([false, true, true, false]);
    const [kept = 0, undone = 0, , last = 0] = xids;
    expect(await rolledBack(source, [kept, last])).toBe(false);
    expect(await rolledBack(source, [kept, undone, last])).toBe(true);
  });

  it('knows whether anything else was rolled back since a transaction began, unless too much did', async () => {
    const source = await suite.database();
    await source.query('create table t(id int)');
    const { xids } = await verdictsOf(source);
    const [kept = 0, undone = 0, within = 0, last = 0] = xids;
    const since = (xid: number, known: number[]): Promise<boolean> =>
      mayBeRolledBackSince(sessionOf(source), xid, known);
    expect(await since(kept, [undone, within])).toBe(false);
    expect(await since(kept, [within])).toBe(true);
    expect(await since(kept, [])).toBe(true);
    expect(await since(last, [])).toBe(false);
    await source.query(
      `do $$ begin
         for i in 1..100001 loop
           begin insert into t values (i); exception when division_by_zero then end;
         end loop;
       end $$`,
    );
    expect(await since(last, [])).toBe(true);
  });

  it('knows it on a standby that has the commit', async () => {
    const servers = await PrimaryAndStandby.start({
      schema: 'create table t(id int)',
    });
    const { xids, verdicts } = await verdictsOf(servers.source);
    await servers.caughtUp();
    const there = xids.map((xid) => rolledBack(servers.copy, [xid]));
    expect(await Promise.all(there)).toEqual(verdicts);
  }, 120_000);

  it('knows it where transaction ids go over 2^32, and nothing of one that is too old', async () => {
    const server = await PostgresServer.start();
    onTestFinished(() => server.remove(), 60_000);
    await nearEndOfXids(server);
    const source = await server.createDatabase();
    await source.query('create table t(id int)');
    // Rows that are as old are frozen.
    expect(await rolledBack(source, [3_000_000_000])).toBe(true);
    await useUpXids(server, 12n);
    const rounds = [];
    while (rounds.length < 6) rounds.push(await verdictsOf(source));
    for (const { verdicts } of rounds)
      expect(verdicts).toEqual([false, true, true, false]);
    const xids = rounds.flatMap((round) => round.xids);
    expect(Math.max(...xids)).toBeGreaterThan(2 ** 32 - 20);
    expect(Math.min(...xids)).toBeLessThan(50);
  }, 120_000);
});
