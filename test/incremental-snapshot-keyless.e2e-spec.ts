import { describe, expect, it } from 'vitest';
import { compareTables, NO_DIFFERENCE } from './support/compare-tables.js';
import type { Copying } from './support/copying.js';
import { haltedFor } from './support/halted.js';
import { keylessCopy } from './support/keyless-copy.js';
import { CREATE_LEDGER } from './support/mirror.js';
import {
  type SourceAndTarget,
  sourceAndTarget,
} from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer();

const TABLE = 'create table t(a int, b text)';

async function populated(rows: string): Promise<SourceAndTarget> {
  const both = await sourceAndTarget(
    suite,
    `${TABLE}; alter table t replica identity full; ${rows}; create publication p for table t`,
  );
  await both.target.query(`${TABLE}; ${CREATE_LEDGER}`);
  return both;
}

async function complete({ pipeline }: Copying): Promise<void> {
  await waitFor(() => pipeline.status().snapshot?.state === 'complete', {
    message: `the snapshot to be complete; the pipeline is ${pipeline.state}`,
  });
}

async function equal(
  { pipeline }: Copying,
  { source, target }: SourceAndTarget,
): Promise<void> {
  await pipeline.caughtUp();
  expect(await compareTables(source, target)).toEqual(NO_DIFFERENCE);
}

describe('a table without a key, whose rows are the same', () => {
  it.each(['initial', 'incremental'] as const)(
    'is copied row by row, and an update brings the whole old row: %s (K14)',
    async (mode) => {
      const both = await populated(
        "insert into t select 1, 'dup' from generate_series(1, 5)",
      );
      const { source, target } = both;
      const copy = keylessCopy(source, { target, snapshot: { mode } });
      const { pipeline, copied, applied } = copy;
      pipeline.start();
      await complete(copy);
      expect(copied.flatMap(({ rows }) => rows).length).toBe(5);
      await pipeline.whenStreaming();
      await source.query(
        "update t set b = 'z' where ctid = (select min(ctid) from t)",
      );
      await equal(copy, both);
      expect(applied[0]?.changes).toMatchObject([
        {
          op: 'update',
          record: { a: '1', b: 'z' },
          old: { kind: 'full', record: { a: '1', b: 'dup' } },
        },
      ]);
    },
  );
});

it('a table without a key that is written to meanwhile is copied again, and is right (K14)', async () => {
  const both = await populated(
    "insert into t select g % 3, 'v' from generate_series(1, 4000) g",
  );
  const { source, target } = both;
  const again: string[] = [];
  let written = false;
  const copy = keylessCopy(source, {
    target,
    snapshot: { mode: 'incremental', maxPendingChunks: 1 },
    beforeRows: async ({ rows }) => {
      if (written || rows.length === 0) return;
      written = true;
      await source.query(
        "update t set b = 'z' where ctid = (select min(ctid) from t); delete from t where ctid = (select max(ctid) from t)",
      );
    },
  });
  const { pipeline } = copy;
  pipeline.on('snapshotTableAgain', ({ table }) => again.push(table));
  pipeline.start();
  await complete(copy);
  await equal(copy, both);
  expect(again).toEqual(['public.t']);
});

it('a table without a key that is written to all the time halts at the third attempt, and is copied when it rests (69)', async () => {
  const both = await populated(
    "insert into t select g % 3, 'v' from generate_series(1, 4000) g",
  );
  const { source, target } = both;
  const again: string[] = [];
  const options = {
    target,
    snapshot: { mode: 'incremental', maxPendingChunks: 1 },
  } as const;
  const first = keylessCopy(source, {
    ...options,
    beforeRows: async ({ rows }) => {
      if (rows.length > 0) await source.query("insert into t values (7, 'w')");
    },
  });
  first.pipeline.on('snapshotTableAgain', ({ table }) => again.push(table));
  first.pipeline.start();
  const halt = await haltedFor(first.pipeline, 'snapshot_table_contended');
  expect(halt.detail).toContain('public.t');
  expect(again).toEqual(['public.t', 'public.t']);
  const second = keylessCopy(source, options);
  second.pipeline.start();
  await complete(second);
  await equal(second, both);
});
