import { describe, expect, it } from 'vitest';
import { compareTables, NO_DIFFERENCE } from './support/compare-tables.js';
import {
  copying,
  type Copying,
  type CopyingOptions,
} from './support/copying.js';
import { haltedFor } from './support/halted.js';
import { PrimaryAndStandby } from './support/standby.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

/** Of the sink. */
const suite = useServer();
const FIRST_THAT_DECODES_ON_STANDBYS = 16;
const TIMEOUT_MS = 120_000;
const TABLE = 'create table t(id int primary key, v text)';

interface FromStandby {
  readonly servers: PrimaryAndStandby;
  readonly target: TestDatabase;
  readonly copy: Copying;
}

async function fromStandby(
  options: (servers: PrimaryAndStandby) => Omit<CopyingOptions, 'target'>,
): Promise<FromStandby> {
  const servers = await PrimaryAndStandby.start({
    schema: `${TABLE}; insert into t select g, 'old' from generate_series(1, 3000) g; create publication p for table t`,
  });
  const target = await suite.database('target');
  await target.query(TABLE);
  const copy = copying(servers.copy, { target, ...options(servers) });
  return { servers, target, copy };
}

/** Starts, and lets the primary say what runs there until there is a slot. */
async function started({ servers, copy }: FromStandby): Promise<void> {
  const { pipeline } = copy;
  pipeline.start();
  await waitFor(
    async () => {
      await servers.primary.query('select pg_log_standby_snapshot()');
      return pipeline.state !== 'connecting';
    },
    { timeout: 30_000, message: 'the slot on the standby' },
  );
}

async function equal({ servers, target }: FromStandby): Promise<void> {
  await waitFor(
    async () =>
      JSON.stringify(await compareTables(servers.source, target)) ===
      JSON.stringify(NO_DIFFERENCE),
    { timeout: 30_000, message: 'the copy to be what the primary is' },
  );
}

/** Where standbys cannot decode, the server says so, and nothing is created. */
async function isRefused({ servers, copy }: FromStandby): Promise<void> {
  copy.pipeline.start();
  await haltedFor(copy.pipeline, 'command_error/permanent');
  expect(copy.copied).toEqual([]);
  expect(await servers.copy.query('select from pg_replication_slots')).toEqual(
    [],
  );
}

describe('a snapshot of a standby', () => {
  it(
    'in the initial mode has what was committed when its slot began; writers whose transactions are open meanwhile come by the stream',
    async () => {
      const pair = await fromStandby((servers) => ({
        snapshot: { mode: 'initial', parallelTables: 1 },
        beforeRows: async ({ context }) => {
          if (context.firstForTable)
            await servers.source.query(
              "update t set v = 'during' where id in (5, 2500)",
            );
        },
      }));
      const { servers, copy } = pair;
      if (servers.primary.majorVersion < FIRST_THAT_DECODES_ON_STANDBYS)
        return isRefused(pair);
      const ended = new AbortController();
      const writers = [0, 1, 2, 3].map(async (writer) => {
        const client = await servers.source.connect();
        for (let n = 0; !ended.signal.aborted; n += 1)
          await client.query(
            `begin; insert into t values (${10_000 + n * 4 + writer}, 'new'); update t set v = 'w' where id = ${1 + ((n * 4 + writer) % 3_000)};
             select pg_sleep(0.01); commit`,
          );
      });
      try {
        await started(pair);
        await copy.pipeline.whenStreaming();
        await waitFor(() => copy.applied.length > 20);
      } finally {
        ended.abort();
        await Promise.all(writers);
      }
      expect(copy.copied.flatMap(({ rows }) => rows).length).toBeGreaterThan(
        2_999,
      );
      await equal(pair);
    },
    TIMEOUT_MS,
  );

  it(
    'in the incremental mode is right where a transaction of the primary was open and commits in the middle',
    async () => {
      let chunks = 0;
      let open: { query(sql: string): Promise<unknown> } | null = null;
      const pair = await fromStandby((servers) => ({
        snapshot: { mode: 'incremental', chunkRows: 100, maxPendingChunks: 2 },
        beforeRows: async ({ rows }) => {
          if (rows.length === 0) return;
          chunks += 1;
          if (chunks === 2) {
            open = await servers.source.connect();
            await open.query(
              `begin; update t set v = 'open' where id % 10 = 1; delete from t where id % 10 = 2; update t set id = id + 10000 where id % 10 = 3;
               insert into t values (0, 'open'), (1000000, 'open')`,
            );
            // Others end meanwhile, so that snapshots of the standby go beyond the open one.
            await servers.source.query(
              "update t set v = 'closed' where id % 10 = 4",
            );
            await servers.caughtUp();
          }
          if (chunks === 12) {
            await open?.query('commit');
            await servers.caughtUp();
          }
        },
      }));
      if (pair.servers.primary.majorVersion < FIRST_THAT_DECODES_ON_STANDBYS)
        return isRefused(pair);
      await started(pair);
      const { pipeline } = pair.copy;
      await waitFor(() => pipeline.status().snapshot?.state === 'complete', {
        timeout: 40_000,
        message: 'the snapshot to be complete',
      });
      expect(chunks).toBeGreaterThan(25);
      await equal(pair);
    },
    TIMEOUT_MS,
  );
});
