import { describe, expect, it } from 'vitest';
import type { Lsn } from '../lib/engine/model/lsn.js';
import type { Transaction } from '../lib/engine/model/transaction.js';
import { SnapshotRefusedError } from '../lib/engine/model/snapshot-refused-error.js';
import type { PipelineOptions } from '../lib/engine/options/pipeline-options.js';
import { compareTables, NO_DIFFERENCE } from './support/compare-tables.js';
import {
  copying,
  type Copying,
  type CopyingOptions,
} from './support/copying.js';
import { haltedFor } from './support/halted.js';
import { applyByKey } from './support/keyed-mirror.js';
import {
  confirmedUpTo,
  currentLsn,
  terminateBackend,
  walsenderPid,
} from './support/logical-slot.js';
import { MIXED_TABLES, MixedWriter } from './support/mixed-writer.js';
import { present } from './support/present.js';
import {
  type SourceAndTarget,
  sourceAndTarget,
} from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer();

const TABLE = 'create table t(id int primary key, v text)';
const CHUNKS = { mode: 'incremental', chunkRows: 50 } as const;

/** A source with rows, and a target with empty tables of the same names. */
async function populated(
  schema = TABLE,
  rows = "insert into t select g, 'v' || g from generate_series(1, 1000) g",
  tables = 't',
): Promise<SourceAndTarget> {
  const both = await sourceAndTarget(
    suite,
    `${schema}; create publication p for table ${tables}; ${rows}`,
  );
  await both.target.query(schema);
  return both;
}

function mixed(): Promise<SourceAndTarget> {
  return populated(
    MIXED_TABLES,
    `insert into account select g, 'n' || g, 0, repeat('y', 9000) from generate_series(0, 96) g;
     insert into entry select g % 97, g, g from generate_series(1, 3000) g`,
    'account, entry',
  );
}

function started(source: TestDatabase, options: CopyingOptions): Copying {
  const copy = copying(source, { snapshot: CHUNKS, ...options });
  copy.pipeline.start();
  return copy;
}

async function complete({ pipeline }: Copying): Promise<void> {
  await waitFor(() => pipeline.status().snapshot?.state === 'complete', {
    timeout: 25_000,
    message: `the snapshot to be complete; the pipeline is ${pipeline.state}`,
  });
  await pipeline.caughtUp();
}

/** Sessions of the pipeline that are no walsender. */
async function sessionsOf(source: TestDatabase): Promise<number> {
  const rows = await source.query(
    `select from pg_stat_activity where datname = current_database()
       and application_name like 'nestjs-replicant%' and backend_type = 'client backend'`,
  );
  return rows.length;
}

function calls(copy: Copying, of: 'firstForTable' | 'complete'): number {
  return copy.copied.filter(({ context }) => context[of]).length;
}

describe('an incremental snapshot', () => {
  it('is right beside a writer when its connections are cut again and again (K05, 61, 65)', async () => {
    const { source, target } = await mixed();
    const writer = await MixedWriter.start(source);
    const copy = started(source, {
      target,
      snapshot: { mode: 'incremental', chunkRows: 20 },
    });
    for (let cuts = 0; cuts < 4; cuts += 1) {
      const before = copy.copied.length;
      await waitFor(
        () => copy.copied.length > before + 15 || calls(copy, 'complete') > 0,
        { timeout: 20_000 },
      );
      expect(await sessionsOf(source)).toBeLessThanOrEqual(2);
      await terminateBackend(
        source,
        await walsenderPid(source, `slot_${source.name}`),
      );
    }
    await complete(copy);
    await writer.stop();
    await copy.pipeline.caughtUp();
    expect(await compareTables(source, target)).toEqual(NO_DIFFERENCE);
    expect(calls(copy, 'firstForTable')).toBe(2);
    expect(calls(copy, 'complete')).toBe(1);
    await copy.pipeline.stop();
    expect(await sessionsOf(source)).toBe(0);
  }, 90_000);

  it('goes on when the session that reads is lost', async () => {
    const { source, target } = await populated();
    const copy = started(source, { target });
    const begun: unknown[] = [];
    copy.pipeline.on('snapshotStarted', (event) => begun.push(event));
    await waitFor(() => copy.copied.length >= 4);
    await source.query(
      `select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = current_database()
         and application_name like 'nestjs-replicant%' and backend_type = 'client backend'`,
    );
    await complete(copy);
    const event = { mode: 'incremental', tables: 1, done: 0 };
    expect(begun).toEqual([
      { ...event, resumed: false },
      { ...event, resumed: true },
    ]);
    expect(await compareTables(source, target)).toEqual(NO_DIFFERENCE);
    const ids = copy.copied.flatMap(({ rows }) =>
      rows.map(({ record }) => record['id']),
    );
    expect(ids.length).toBe(1_000);
  });

  it.each<[string, (target: TestDatabase) => Partial<PipelineOptions>]>([
    [
      'the library keeps the checkpoint',
      (target) => ({
        checkpointStore: { connection: { ...target.connection } },
      }),
    ],
    [
      'the library keeps the checkpoint, in batches',
      (target) => ({
        checkpointStore: {
          connection: { ...target.connection },
          batch: { maxTransactions: 20, maxDelayMs: 50 },
        },
      }),
    ],
  ])('is right beside a writer when %s (67)', async (_what, options) => {
    const { source, target } = await mixed();
    const writer = await MixedWriter.start(source);
    const copy = started(source, { target, ...options(target) });
    await complete(copy);
    await writer.stop();
    await copy.pipeline.caughtUp();
    expect(await compareTables(source, target)).toEqual(NO_DIFFERENCE);
  });

  it('is right beside a writer when transactions are delivered in batches (67)', async () => {
    const { source, target } = await mixed();
    const writer = await MixedWriter.start(source);
    const client = await target.connect();
    let copy: Copying | null = null;
    copy = started(source, {
      target,
      batchDelivery: { maxTransactions: 20, maxDelayMs: 50 },
      sink: {
        async batch(transactions: readonly Transaction[]) {
          await client.query('begin');
          const fresh = await present(copy).checkpoints.advance(
            (sql, values) => client.query(sql, [...values]),
            transactions,
          );
          for (const transaction of fresh)
            for await (const change of transaction.changes)
              await applyByKey(client, change);
          await client.query('commit');
        },
      },
    });
    await complete(copy);
    await writer.stop();
    await copy.pipeline.caughtUp();
    expect(await compareTables(source, target)).toEqual(NO_DIFFERENCE);
  });

  it('converges with 20,000 wide rows beside a writer (63)', async () => {
    const { source, target } = await populated(
      TABLE,
      'insert into t select g, repeat(md5(g::text), 30) from generate_series(1, 20000) g',
    );
    const writer = (async () => {
      for (let id = 1; id <= 20_000; id += 97)
        await source.query(
          "update t set v = 'new' where id = $1 or id = 20001 - $1",
          [id],
        );
    })();
    const copy = started(source, { target, snapshot: { mode: 'incremental' } });
    await complete(copy);
    await writer;
    await copy.pipeline.caughtUp();
    expect(await compareTables(source, target)).toEqual(NO_DIFFERENCE);
  });

  it('needs little time for each chunk when nothing is written (64)', async () => {
    const { source, target } = await populated();
    const copy = started(source, { target });
    const before = performance.now();
    await complete(copy);
    expect(copy.copied.filter(({ rows }) => rows.length > 0).length).toBe(20);
    expect(performance.now() - before).toBeLessThan(10_000);
  });

  it('confirms the stream meanwhile, so that the server keeps no WAL for it (K16)', async () => {
    const { source, target } = await populated();
    let chunks = 0;
    let written: Lsn = 0n;
    const copy = started(source, {
      target,
      afterRows: async ({ rows }) => {
        if (rows.length > 0) chunks += 1;
        if (chunks === 3 && written === 0n) {
          written = await currentLsn(source);
          await source.query("insert into t values (5000, 'beside')");
        }
        if (chunks === 15)
          await confirmedUpTo(source, `slot_${source.name}`, written);
      },
    });
    await complete(copy);
    expect(chunks).toBeGreaterThan(15);
    expect(await compareTables(source, target)).toEqual(NO_DIFFERENCE);
  });

  it('tells again only that it is complete when that failed (71)', async () => {
    const { source, target } = await populated();
    const first = started(source, {
      target,
      beforeRows: async ({ context }) => {
        if (context.complete) throw new Error('no');
      },
    });
    await haltedFor(first.pipeline, 'snapshot_failed');
    expect(calls(first, 'complete')).toBe(0);
    const second = started(source, { target });
    await complete(second);
    expect(second.copied.map(({ context }) => context.complete)).toEqual([
      true,
    ]);
    expect(await compareTables(source, target)).toEqual(NO_DIFFERENCE);
  });

  it.each([
    ['cut off', 'left(snapshot_progress, length(snapshot_progress) - 1)'],
    ['of another origin', '\'{"tables": ["t; drop table t"]}\''],
    ['empty', "''"],
  ])('refuses a progress that is %s (74)', async (_what, sql) => {
    const { source, target } = await populated();
    const first = started(source, { target });
    await waitFor(() => first.copied.length >= 4);
    await first.pipeline.stop();
    await target.query(
      `update replicant_checkpoints set snapshot_progress = ${sql}`,
    );
    const second = started(source, { target });
    await haltedFor(second.pipeline, 'snapshot_progress_invalid');
    expect(second.copied).toEqual([]);
  });

  it('copies tables that are published later when it is told to, without a restart (K17, 75)', async () => {
    const { source, target } = await populated();
    const copy = started(source, { target });
    await complete(copy);
    for (const database of [source, target])
      await database.query('create table late(id int primary key, v text)');
    await source.query(
      "insert into late select g, 'v' from generate_series(1, 130) g; alter publication p add table late",
    );
    await source.query("insert into late values (1000, 'streamed')");
    await copy.pipeline.caughtUp();
    expect((await target.query('select from late')).length).toBe(1);
    await copy.pipeline.snapshot(['public.late']);
    await copy.pipeline.caughtUp();
    expect(await compareTables(source, target)).toEqual(NO_DIFFERENCE);
    const asked = (): Promise<void> => copy.pipeline.snapshot(['public.none']);
    await expect(asked()).rejects.toThrow(SnapshotRefusedError);
    await expect(asked()).rejects.toThrow(
      'Nothing was copied: no publication of the pipeline carries a table "public.none".',
    );
  });

  it('copies a table when its role may read it, and streams on before', async () => {
    const { source, target } = await populated();
    const role = `reader_${source.name}`;
    await source.query(
      `create role ${role} login replication password 'secret'; grant select on t to ${role}`,
    );
    const copy = started(source, {
      target,
      connection: { ...source.connection, user: role, password: 'secret' },
    });
    await complete(copy);
    for (const database of [source, target])
      await database.query('create table late(id int primary key, v text)');
    await source.query(
      "insert into late values (1, 'v'); alter publication p add table late",
    );
    const asked = (): Promise<void> => copy.pipeline.snapshot(['public.late']);
    await expect(asked()).rejects.toThrow(SnapshotRefusedError);
    await expect(asked()).rejects.toThrow(
      `Nothing was copied: the role ${role} may not read public.late; run: GRANT SELECT ON public.late TO ${role}. Then call snapshot() again; the pipeline has gone on streaming.`,
    );
    expect(copy.pipeline.state).toBe('streaming');
    await source.query(`grant select on late to ${role}`);
    await asked();
    expect(await compareTables(source, target)).toEqual(NO_DIFFERENCE);
  });
});
