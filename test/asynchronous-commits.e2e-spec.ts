import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { Row } from '../lib/engine/model/change.js';
import { changesOf } from './support/changes-of.js';
import { compareTables, NO_DIFFERENCE } from './support/compare-tables.js';
import { copying } from './support/copying.js';
import { keylessCopy } from './support/keyless-copy.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

/** Commits are visible long before they are in the log, unless a lot is written. */
const sources = useServer({
  settings: {
    synchronous_commit: 'off',
    wal_writer_delay: '10s',
    wal_writer_flush_after: '64kB',
  },
});
/** Its own server: a commit of the sink would flush the log of the source. */
const targets = useServer();

const ROWS = 2_000;
/** A sink that falls behind would hold up the chunks. */
const WRITE_MS = 10;
const TIMEOUT_MS = 120_000;

async function bothWith(
  schema: string,
  filled: string,
): Promise<{ source: TestDatabase; target: TestDatabase }> {
  const source = await sources.database();
  const target = await targets.database('target');
  await source.query(`${schema}; ${filled}; create table other(v text)`);
  await target.query(schema);
  return { source, target };
}

/** Writes all that was committed to the log. */
async function flush(source: TestDatabase): Promise<void> {
  await source.query(
    'begin; set local synchronous_commit = on; insert into other default values; commit',
  );
}

async function unflushed(source: TestDatabase): Promise<boolean> {
  const [row] = await source.query<{ behind: boolean }>(
    'select pg_current_wal_insert_lsn() - pg_current_wal_flush_lsn() > 40 as behind',
  );
  return row?.behind === true;
}

it(
  'a row of a table with a key never steps back, while many commits are visible before they are in the log',
  async () => {
    const { source, target } = await bothWith(
      'create table t(id int primary key, v int not null)',
      `insert into t select g, 0 from generate_series(1, ${ROWS}) g; create publication p for table t`,
    );
    /** What the sink has of each row: the version grows with every commit. */
    const versions = new Map<number, number>();
    const back: string[] = [];
    const saw = (record: Row): void => {
      const [id, version] = [Number(record['id']), Number(record['v'])];
      const before = versions.get(id) ?? 0;
      if (version < before) back.push(`${id}: ${before} -> ${version}`);
      versions.set(id, version);
    };
    let writing = true;
    let behind = 0;
    const writer = (async () => {
      const client = await source.connect();
      for (let n = 1; writing; n += 1) {
        // Rows that are copied, and those that are copied soon.
        const id = 1 + ((n * 37) % ROWS);
        await client.query(
          `begin; insert into other select repeat('x', 2000); update t set v = ${n} where id = ${id}; commit`,
        );
        if (n % 20 === 0 && (await unflushed(source))) behind += 1;
        await sleep(WRITE_MS);
      }
    })();
    const copy = copying(source, {
      target,
      snapshot: { mode: 'incremental', chunkRows: 50 },
      beforeRows: async ({ rows }) => {
        for (const { record } of rows) saw(record);
      },
      beforeTransaction: async (transaction) => {
        for (const change of changesOf(transaction))
          if (change.op === 'update') saw(change.record);
      },
    });
    copy.pipeline.start();
    try {
      await waitFor(
        () =>
          copy.copied.reduce((sum, { rows }) => sum + rows.length, 0) >=
          ROWS - 200,
        { timeout: 60_000, message: 'most rows to be copied' },
      );
    } finally {
      writing = false;
      await writer;
    }
    await flush(source);
    await waitFor(() => copy.pipeline.status().snapshot?.state === 'complete', {
      timeout: 40_000,
      message: 'the copy to be complete',
    });
    await flush(source);
    await copy.pipeline.caughtUp();
    expect(behind).toBeGreaterThan(0);
    expect(back).toEqual([]);
    expect(await compareTables(source, target)).toEqual(NO_DIFFERENCE);
  },
  TIMEOUT_MS,
);

it(
  'a row of a table without a key is there once, though its commit was visible before it is in the log',
  async () => {
    const { source, target } = await bothWith(
      'create table a(id int primary key); create table t(v text); create table ledger(slot_name text, commit_lsn pg_lsn, changes int)',
      'insert into a values (1); insert into t select g::text from generate_series(1, 100) g; alter table t replica identity full; create publication p for table a, t',
    );
    await flush(source);
    let written = false;
    const copy = keylessCopy(source, {
      target,
      // Tables without a key are read last, and so when the sink has taken the others.
      snapshot: { mode: 'incremental', maxPendingChunks: 1 },
      afterRows: async ({ rows, context }) => {
        if (written || context.relation !== 'public.a' || rows.length === 0)
          return;
        written = true;
        await source.query("insert into t values ('visible early')");
      },
    });
    copy.pipeline.start();
    await waitFor(
      async () =>
        (
          await source.query(
            `select from pg_stat_activity where datname = current_database() and state = 'idle in transaction'
               and application_name like 'nestjs-replicant%' and query like '%flush%' and query not like '%snapshot%'`,
          )
        ).length === 1,
      { timeout: 20_000, message: 'the copy to wait for the log' },
    );
    expect(await unflushed(source)).toBe(true);
    expect(
      copy.copied.filter(({ rows }) => rows.some(({ table }) => table === 't')),
    ).toEqual([]);
    await flush(source);
    await waitFor(() => copy.pipeline.status().snapshot?.state === 'complete', {
      timeout: 20_000,
    });
    await flush(source);
    await copy.pipeline.caughtUp();
    expect(await compareTables(source, target)).toEqual(NO_DIFFERENCE);
  },
  TIMEOUT_MS,
);
