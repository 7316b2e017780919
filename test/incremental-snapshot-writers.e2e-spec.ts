import { expect, it } from 'vitest';
import type { Lsn } from '../lib/engine/model/lsn.js';
import { compareTables, NO_DIFFERENCE } from './support/compare-tables.js';
import {
  copying,
  type Copying,
  type CopyingOptions,
} from './support/copying.js';
import { readSlot } from './support/logical-slot.js';
import {
  type SourceAndTarget,
  sourceAndTarget,
  writeNoise,
} from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { deferred, waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '4s' } });

const TABLE = 'create table t(id int primary key, v text)';

/** A source with rows, and a target with empty tables of the same names. */
async function populated(
  schema: string,
  rows: string,
  tables = 't',
): Promise<SourceAndTarget> {
  const both = await sourceAndTarget(
    suite,
    `${schema}; ${rows}; create publication p for table ${tables}`,
  );
  await both.target.query(schema);
  return both;
}

function started(
  source: TestDatabase,
  options: CopyingOptions,
  chunkRows = 50,
): Copying {
  const copy = copying(source, {
    snapshot: { mode: 'incremental', chunkRows },
    ...options,
  });
  copy.pipeline.start();
  return copy;
}

async function complete({ pipeline }: Copying): Promise<void> {
  await waitFor(() => pipeline.status().snapshot?.state === 'complete', {
    timeout: 40_000,
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

/** Runs statements, each a transaction, whenever the sink is given rows: others are read and wait at that time. */
function writing(
  source: TestDatabase,
  statements: (n: number) => readonly string[],
): NonNullable<CopyingOptions['beforeRows']> {
  let n = 0;
  return async ({ rows }) => {
    if (rows.length === 0) return;
    n += 1;
    for (const statement of statements(n)) await source.query(statement);
  };
}

/** Keys of the rows that chunks have brought, in their order. */
function keys({ copied }: Copying): unknown[] {
  return copied.flatMap(({ rows }) => rows.map(({ record }) => record['id']));
}

it.each([
  ['uuid', 'uuid'],
  ['text in the order of a language', 'text collate "en-x-icu"'],
])(
  'rows whose key is %s are right beside a writer (62)',
  async (_what, type) => {
    const key =
      type === 'uuid' ? 'gen_random_uuid()' : 'gen_random_uuid()::text';
    const both = await populated(
      `create table t(id ${type} primary key, v int)`,
      `insert into t select ${key}, 0 from generate_series(1, 2000) g`,
    );
    const { source, target } = both;
    const beforeRows = writing(source, (n) => {
      const some = `select id from t order by md5(id::text || ${n}) limit`;
      return [
        `update t set v = ${n} where id in (${some} 5)`,
        `delete from t where id in (${some} 1)`,
        `insert into t values (${key}, ${n})`,
        `update t set id = ${key} where id in (${some} 1)`,
      ];
    });
    const copy = started(source, { target, beforeRows });
    await complete(copy);
    await equal(copy, both);
  },
);

it('deletes, changes of keys and a truncate are right on both sides of what is copied (68)', async () => {
  const both = await populated(
    `${TABLE}; create table u(id int primary key, v text)`,
    `insert into t select g, 'old' from generate_series(1, 1000) g;
     insert into u select g, 'old' from generate_series(1, 1000) g`,
    't, u',
  );
  const { source, target } = both;
  const tables: string[] = [];
  const copy = started(source, {
    target,
    afterRows: async ({ rows, context: { relation } }) => {
      if (rows.length === 0) return;
      tables.push(relation);
      const chunks = tables.filter((table) => table === relation).length;
      if (relation === 'public.t' && chunks === 8)
        // Rows below 400 are copied; those from 600 on are not, nor read.
        await source.query(
          `delete from t where id in (10, 900); update t set id = id + 2000 where id in (20, 901); update t set id = -id where id in (30, 902);
           begin; update t set id = 5000 where id = 40; update t set id = 40 where id = 903; update t set id = 903 where id = 5000; commit;
           begin; delete from t where id in (50, 904); insert into t values (50, 'new'), (904, 'new'); commit;
           insert into t values (0, 'new'), (3000, 'new'); delete from t where id = 3000`,
        );
      if (relation === 'public.u' && chunks === 8)
        await source.query(
          `truncate u; insert into u values (1, 'new'), (2000, 'new'); update u set id = 3 where id = 1`,
        );
    },
  });
  await complete(copy);
  await equal(copy, both);
  expect(await target.query('select id, v from u order by id')).toEqual([
    { id: 3, v: 'new' },
    { id: 2_000, v: 'new' },
  ]);
});

it('a table with a key that is as busy as can be completes, in chunks of one row (70)', async () => {
  const both = await populated(
    TABLE,
    `insert into t select g, 'old' from generate_series(1, 200) g`,
  );
  const { source, target } = both;
  const again: unknown[] = [];
  const copy = copying(source, {
    target,
    snapshot: { mode: 'incremental', chunkRows: 1 },
    beforeRows: writing(source, (n) => [
      `update t set v = ${n} where id in (select 1 + (g * 7 + ${n}) % 200 from generate_series(1, 20) g)`,
    ]),
  });
  copy.pipeline.on('snapshotTableAgain', (event) => again.push(event));
  copy.pipeline.start();
  await complete(copy);
  await equal(copy, both);
  expect(again).toEqual([]);
});

it('a sink that does not come on holds up stream and copy, in bounded memory, and gets everything afterwards (72)', async () => {
  const both = await populated(
    TABLE,
    `insert into t select g, 'old' from generate_series(1, 2000) g`,
  );
  const { source, target } = both;
  const held = deferred();
  let holding = false;
  const most = 256 * 1024;
  const copy = started(source, {
    target,
    maxInflightBytes: most,
    beforeTransaction: async () => {
      holding = true;
      await held.promise;
    },
  });
  await waitFor(() => copy.copied.length >= 5);
  await source.query("insert into t values (10000, 'new')");
  await waitFor(() => holding);
  const copied = copy.copied.length;
  for (let id = 10_001; id <= 10_060; id += 1)
    await source.query("insert into t values ($1, repeat('x', 50000))", [id]);
  await waitFor(() => copy.pipeline.status().inflightBytes > most / 2);
  // What waits in the socket is more by far; the server stays connected beyond its time-out.
  const since = performance.now();
  await waitFor(
    () => {
      expect(copy.pipeline.status().inflightBytes).toBeLessThan(2 * most);
      return performance.now() - since > 5_000;
    },
    { timeout: 15_000 },
  );
  expect(copy.pipeline.state).toBe('streaming');
  expect(copy.copied.length).toBe(copied);
  held.resolve();
  await complete(copy);
  await equal(copy, both);
  expect(copy.pipeline.halt).toBeNull();
});

it('positions that are confirmed while nothing is published leave a copy as it is that is resumed from there (73)', async () => {
  const both = await populated(
    TABLE,
    `insert into t select g, 'old' from generate_series(1, 3000) g`,
  );
  const { source, target } = both;
  let chunks = 0;
  let noise: Lsn | null = null;
  const hangs = deferred();
  const first = started(source, {
    target,
    // So many that there is time to confirm a position between two of them.
    snapshot: { mode: 'incremental', chunkRows: 2 },
    drainTimeout: 100,
    beforeRows: async ({ rows }) => {
      if (rows.length === 0) return;
      chunks += 1;
      if (chunks === 10)
        await source.query("update t set v = 'early' where id % 100 = 7");
      if (chunks === 30) noise = await writeNoise(source);
      if (noise === null) return;
      const slot = await readSlot(source, `slot_${source.name}`);
      if ((slot?.confirmedFlushLsn ?? 0n) < noise) return;
      hangs.resolve();
      // As in a process that is killed: nothing of this chunk is written.
      await new Promise(() => {});
    },
  });
  await hangs.promise;
  await first.pipeline.stop();
  await source.query(
    "update t set v = 'late' where id % 100 = 8; delete from t where id % 100 = 9",
  );
  const second = started(source, { target });
  await complete(second);
  await equal(second, both);
  const ids = [...keys(first), ...keys(second)];
  expect(new Set(ids).size).toBe(ids.length);
  expect(second.copied.some(({ context }) => context.firstForTable)).toBe(
    false,
  );
});
