import type { INestApplicationContext } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  type BatchOptions,
  Checkpoint,
  CheckpointTable,
  definePipeline,
  formatLsn,
  OnBatch,
  type Pipeline,
  ReplicantModule,
  ReplicantRegistry,
  ReplicantSink,
  type Transaction,
} from 'nestjs-replicant';
import { Pool, type PoolClient } from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { haltedFor } from './support/halted.js';
import { currentLsn, readSlot } from './support/logical-slot.js';
import {
  sourceAndTarget,
  type SourceAndTarget,
} from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '2s' } });
const FOR_EVER = 600_000;

type Source = { 'public.t': { id: number } };

const pipelineOfSource = definePipeline<Source>('default');

/** Writes a batch in one transaction of its database, with a row of a ledger that has no key. */
@ReplicantSink()
class Copies {
  /** The ids of each batch that it was given. */
  readonly batches: number[][] = [];
  beforeCommit: () => Promise<void> = async () => {};
  afterCommit: () => Promise<void> = async () => {};

  @Checkpoint()
  readonly checkpoints = new CheckpointTable((sql, values) =>
    this.pool.query(sql, [...values]),
  );

  constructor(private readonly pool: Pool) {}

  @OnBatch(pipelineOfSource)
  async copy(batch: readonly Transaction<Source>[]): Promise<void> {
    this.batches.push(await idsOf(batch));
    const client = await this.pool.connect();
    let committed = false;
    try {
      await client.query('begin');
      const fresh = await this.checkpoints.advance(
        (sql, values) => client.query(sql, [...values]),
        batch,
      );
      for (const transaction of fresh) await write(client, transaction);
      await this.beforeCommit();
      await client.query('commit');
      committed = true;
    } finally {
      client.release(!committed);
    }
    await this.afterCommit();
  }
}

async function write(
  client: PoolClient,
  { commitLsn, changes }: Transaction<Source>,
): Promise<void> {
  for await (const change of changes) {
    if (change.op !== 'insert') continue;
    await client.query('insert into ledger values ($1, $2)', [
      formatLsn(commitLsn),
      change.record.id,
    ]);
  }
}

async function idsOf(batch: readonly Transaction<Source>[]): Promise<number[]> {
  const ids: number[] = [];
  for (const { changes } of batch) {
    for await (const change of changes)
      if (change.op === 'insert') ids.push(change.record.id);
  }
  return ids;
}

interface Running {
  readonly app: INestApplicationContext;
  readonly pipeline: Pipeline;
  readonly sink: Copies;
}

async function streaming(
  databases: SourceAndTarget,
  batchDelivery: BatchOptions,
): Promise<Running> {
  const { source, target } = databases;
  const pool = new Pool(target.connection);
  pool.on('error', () => {});
  const app = await Test.createTestingModule({
    imports: [
      ReplicantModule.forRoot({
        connection: { ...source.connection },
        slotName: `slot_${source.name}`,
        publication: 'p',
        goForwardOnly: true,
        startup: 'wait',
        batchDelivery,
      }),
    ],
    providers: [Copies, { provide: Pool, useValue: pool }],
  })
    .setLogger({ log() {}, warn() {}, error() {} })
    .compile();
  await app.init();
  onTestFinished(async () => {
    await app.close();
    await pool.end();
  });
  return {
    app,
    pipeline: app.get(ReplicantRegistry).get(),
    sink: app.get(Copies),
  };
}

async function databasesWithLedger(): Promise<SourceAndTarget> {
  const databases = await sourceAndTarget(
    suite,
    'create table t(id int primary key); create publication p for table t',
  );
  await databases.target.query(
    'create table ledger(commit_lsn pg_lsn, id int)',
  );
  return databases;
}

/** Commits each id in a transaction of its own. */
async function commitEach(
  { source }: SourceAndTarget,
  ...ids: readonly number[]
): Promise<void> {
  for (const id of ids) await source.query('insert into t values ($1)', [id]);
}

async function ledger({ target }: SourceAndTarget): Promise<number[]> {
  const rows = await target.query<{ id: number }>(
    'select id from ledger order by commit_lsn',
  );
  return rows.map(({ id }) => id);
}

describe('an application with @OnBatch', () => {
  it('applies full batches in commit order, each once', async () => {
    const databases = await databasesWithLedger();
    const { pipeline, sink } = await streaming(databases, {
      maxTransactions: 3,
      maxDelayMs: FOR_EVER,
    });
    await commitEach(databases, 1, 2, 3, 4, 5, 6);
    await pipeline.caughtUp();
    expect(sink.batches).toEqual([
      [1, 2, 3],
      [4, 5, 6],
    ]);
    expect(await ledger(databases)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it('applies what has waited for long enough', async () => {
    const databases = await databasesWithLedger();
    const { pipeline, sink } = await streaming(databases, { maxDelayMs: 50 });
    await commitEach(databases, 1);
    await pipeline.caughtUp();
    expect(sink.batches).toEqual([[1]]);
  });

  it('applies and confirms an open batch before it is closed, and repeats nothing afterwards', async () => {
    const databases = await databasesWithLedger();
    const { source } = databases;
    const first = await streaming(databases, { maxDelayMs: FOR_EVER });
    await commitEach(databases, 1, 2);
    const end = await currentLsn(source);
    await waitFor(() => first.pipeline.status().inflightBytes > 1_000);
    expect(first.sink.batches).toEqual([]);
    await first.app.close();
    expect(first.sink.batches).toEqual([[1, 2]]);
    expect(await ledger(databases)).toEqual([1, 2]);
    const slot = await readSlot(source, `slot_${source.name}`);
    expect(slot?.confirmedFlushLsn).toBeGreaterThanOrEqual(end);

    const second = await streaming(databases, { maxTransactions: 1 });
    await commitEach(databases, 3);
    await second.pipeline.caughtUp();
    expect(second.sink.batches).toEqual([[3]]);
  });

  it('halts when the batch is refused: nothing of it is stored, and all of it comes again', async () => {
    const databases = await databasesWithLedger();
    const { pipeline, sink } = await streaming(databases, {
      maxTransactions: 2,
      maxDelayMs: FOR_EVER,
    });
    sink.beforeCommit = async () => {
      throw new RangeError('planted');
    };
    await commitEach(databases, 1, 2);
    const halt = await haltedFor(pipeline, 'sink_failed');
    expect(halt.detail).toMatch(
      /^a handler of Copies, given the transactions from [0-9A-F/]+ to [0-9A-F/]+, failed with RangeError$/,
    );
    expect(await ledger(databases)).toEqual([]);
    sink.beforeCommit = async () => {};
    pipeline.start();
    await pipeline.caughtUp();
    expect(sink.batches).toEqual([
      [1, 2],
      [1, 2],
    ]);
    expect(await ledger(databases)).toEqual([1, 2]);
  });

  it('applies a batch once whose commit succeeded before the handler failed', async () => {
    const databases = await databasesWithLedger();
    const { pipeline, sink } = await streaming(databases, {
      maxTransactions: 2,
      maxDelayMs: FOR_EVER,
    });
    sink.afterCommit = async () => {
      throw new Error('planted');
    };
    await commitEach(databases, 1, 2);
    await haltedFor(pipeline, 'sink_failed');
    sink.afterCommit = async () => {};
    pipeline.start();
    await commitEach(databases, 3, 4);
    await pipeline.caughtUp();
    expect(await ledger(databases)).toEqual([1, 2, 3, 4]);
  });
});
