import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { StreamingOptions } from '../lib/engine/options/streaming-options.js';
import { compareTables, NO_DIFFERENCE } from './support/compare-tables.js';
import { copying } from './support/copying.js';
import { currentLsn } from './support/logical-slot.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer({
  settings: { logical_decoding_work_mem: '64kB', wal_sender_timeout: '4s' },
});

const TABLES = `create table t(id int primary key, n int, pad text);
  alter table t alter pad set storage external`;

async function spilling(): Promise<StreamingOptions> {
  const dir = await mkdtemp(join(tmpdir(), 'spill-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  return { spill: { dir, maxSpillBytes: 100_000_000 } };
}

it.each([
  ['in memory', async () => ({}), 16 * 1024 * 1024],
  ['on disk', spilling, 128 * 1024],
])(
  'transactions that are kept %s while they run count for the chunks beside them',
  async (_where, options, maxInflightBytes) => {
    const { source, target } = await sourceAndTarget(
      suite,
      `${TABLES}; create publication p for table t;
       insert into t select g, 0, repeat('x', 2500) from generate_series(1, 1500) g`,
    );
    await target.query(TABLES);
    const writer = await source.connect();
    const rolledBack = await source.connect();
    let calls = 0;
    const copy = copying(source, {
      target,
      streaming: await options(),
      maxInflightBytes,
      snapshot: { mode: 'incremental', chunkRows: 100 },
      // Transactions begin in one call and commit in a later one: some chunks see them, and some do not.
      beforeRows: async ({ rows }) => {
        if (rows.length === 0) return;
        calls += 1;
        switch (calls % 3) {
          case 1:
            await writer.query(
              `begin; update t set n = n + 1 where id % 7 = ${calls % 7};
               savepoint a; update t set n = -1; rollback to a;
               update t set id = -id where id % 50 = ${calls % 50} and id > 0`,
            );
            return;
          case 2:
            await rolledBack.query(
              `begin; insert into t select 100000 + g, -1, repeat('y', 2500) from generate_series(1, 300) g; rollback`,
            );
            return;
          default:
            await writer.query(
              `delete from t where id % 61 = ${calls % 61};
               insert into t values (${10_000 + calls}, ${calls}, repeat('z', 2500)); commit`,
            );
        }
      },
    });
    copy.pipeline.start();
    await waitFor(() => copy.pipeline.status().snapshot?.state === 'complete', {
      timeout: 60_000,
      message: 'the snapshot to be complete',
    });
    await writer.query('commit');
    await copy.pipeline.caughtUp(await currentLsn(source));
    expect(await compareTables(source, target)).toEqual(NO_DIFFERENCE);
    const [streamed] = await source.query<{ txns: string }>(
      `select stream_txns::text as txns from pg_stat_replication_slots where slot_name = 'slot_' || current_database()`,
    );
    expect(Number(streamed?.txns)).toBeGreaterThan(3);
  },
  90_000,
);
