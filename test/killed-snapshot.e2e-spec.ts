import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { compareTables, NO_DIFFERENCE } from './support/compare-tables.js';
import { copying, type CopyingOptions } from './support/copying.js';
import { Random } from './support/random.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import { TestApplication } from './support/test-application.js';
import type { TestDatabase } from './support/test-database.js';
import { deferred, waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '4s' } });

const TABLE = 'create table t(id int primary key, v text)';
const ROWS = 20_000;
const KILLS = 10;
const WRITE_MS = 10;

/** Changes, deletes, renumbers and inserts rows everywhere in the table, until it is stopped. */
function writing(source: TestDatabase): () => Promise<void> {
  const end = new AbortController();
  const done = (async () => {
    for (let n = 1; !end.signal.aborted; n += 1) {
      const old = `(select min(id) from t where id >= ${(n * 7_919) % ROWS})`;
      const statements = [
        `update t set v = 'changed ${n}' where id = ${old}`,
        `delete from t where id = ${old}`,
        `update t set id = id + 1000000 where id = ${old}`,
        `insert into t values (${2 * ROWS + n}, 'new')`,
      ];
      await source.query(statements[n % statements.length] ?? '');
      await sleep(WRITE_MS);
    }
  })();
  const stop = async (): Promise<void> => {
    end.abort();
    await done;
  };
  onTestFinished(stop);
  return stop;
}

it('an application that is killed at ten random points of an incremental snapshot reads nothing again that is durable, and completes once (K07)', async () => {
  const { source, target } = await sourceAndTarget(
    suite,
    `${TABLE}; insert into t select g, 'v' || g from generate_series(1, ${ROWS}) g; create publication p for table t`,
  );
  await target.query(
    `${TABLE}; create table pages(process int, first boolean, ids int[])`,
  );
  const seed = Date.now() | 0;
  console.log(`seed ${seed}`);
  const random = new Random(seed);
  const start = (pageMs: number): TestApplication =>
    TestApplication.start('snapshot', {
      SOURCE_URL: source.url,
      TARGET_URL: target.url,
      SLOT: `slot_${source.name}`,
      SNAPSHOT: 'incremental',
      PAGE_MS: String(pageMs),
    });
  const stop = writing(source);
  const applications: TestApplication[] = [];
  for (let kill = 0; kill < KILLS; kill += 1) {
    const application = start(50);
    applications.push(application);
    await application.says('page 1', { timeout: 30_000 });
    // Anywhere in a page, or between two.
    await sleep(random.next() * 60);
    await application.kill();
  }
  const last = start(0);
  applications.push(last);
  await last.says('copied', { timeout: 60_000 });
  await stop();
  await waitFor(
    async () => {
      const difference = await compareTables(source, target);
      return JSON.stringify(difference) === JSON.stringify(NO_DIFFERENCE);
    },
    { timeout: 30_000, message: 'the copy to be equal' },
  );
  const [calls] = await target.query(
    `select (count(*) filter (where first))::int as firsts, (select (count(*) - count(distinct id))::int from pages, unnest(ids) id) as repeated,
       count(distinct process)::int > 1 as resumed from pages`,
  );
  expect(calls).toEqual({ firsts: 1, repeated: 0, resumed: true });
  expect(
    applications.flatMap(({ said }) =>
      said.filter((word) => word === 'copied'),
    ),
  ).toEqual(['copied']);
}, 120_000);

it.each<[string, (target: TestDatabase) => Partial<CopyingOptions>]>([
  ['the sink', () => ({})],
  [
    'the library',
    (target) => ({ checkpointStore: { connection: { ...target.connection } } }),
  ],
])(
  'a process that ends when there is a slot and nothing was copied is gone on from, where %s keeps the checkpoint (66)',
  async (_who, options) => {
    const { source, target } = await sourceAndTarget(
      suite,
      `${TABLE}; insert into t select g, 'old' from generate_series(1, 500) g; create publication p for table t`,
    );
    await target.query(`${TABLE}; insert into t values (-1, 'stale')`);
    const common = {
      target,
      snapshot: { mode: 'incremental', chunkRows: 100 },
      ...options(target),
    } as const;
    const hangs = deferred();
    const first = copying(source, {
      ...common,
      drainTimeout: 100,
      // As in a process that is killed: nothing of it is written.
      beforeRows: async () => {
        hangs.resolve();
        await new Promise(() => {});
      },
    });
    first.pipeline.start();
    await hangs.promise;
    await first.pipeline.stop();
    expect(first.copied).toEqual([]);
    await source.query(
      "update t set v = 'new' where id = 7; delete from t where id = 8; insert into t values (1000, 'new')",
    );
    const second = copying(source, common);
    second.pipeline.start();
    await waitFor(
      () => second.pipeline.status().snapshot?.state === 'complete',
      {
        message: `the snapshot to be complete; the pipeline is ${second.pipeline.state}`,
      },
    );
    await second.pipeline.caughtUp();
    expect(await compareTables(source, target)).toEqual(NO_DIFFERENCE);
    expect(
      second.copied.filter(({ context }) => context.firstForTable).length,
    ).toBe(1);
  },
);
