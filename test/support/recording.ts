import { Pool, type PoolClient } from 'pg';
import { onTestFinished } from 'vitest';
import { CheckpointTable } from '../../lib/engine/checkpoint/checkpoint-table.js';
import { formatLsn } from '../../lib/engine/model/lsn.js';
import type { Transaction } from '../../lib/engine/model/transaction.js';
import type { PipelineOptions } from '../../lib/engine/options/pipeline-options.js';
import { Pipeline } from '../../lib/engine/pipeline.js';
import type { PipelineEvents } from '../../lib/engine/telemetry/pipeline-events.js';
import type { TestDatabase } from './test-database.js';

/** What a recording sink is told to do. */
export interface RecordingOptions extends Partial<PipelineOptions> {
  /** Where the sink writes, and where its checkpoint is. */
  readonly target: TestDatabase;
  /** Runs in each call of the sink, after its rows are written and before they are committed. */
  readonly inside?: (call: Call) => Promise<unknown>;
  /** Runs in each call of the sink when all is committed. */
  readonly after?: (call: Call) => Promise<unknown>;
  /** Runs before each statement by which the library itself reads or stores the checkpoint of the sink. */
  readonly asking?: () => Promise<unknown>;
}

/** One call of the sink. */
export interface Call {
  readonly transactions: readonly Transaction[];
  /** Those of them that were not applied before. */
  readonly ids: readonly number[];
}

/** A pipeline and what its sink was called with. */
export interface Recording {
  readonly pipeline: Pipeline;
  /** The rows of each call that committed, in order. */
  readonly committed: (readonly number[])[];
  /** The rows of each call that failed. */
  readonly failed: (readonly number[])[];
}

/**
 * Builds a pipeline whose sink records the inserts of `t` in a table without a key, so that a second time shows. With the option
 * `batchDelivery` it is handed batches; with `checkpointStore` it keeps no checkpoint; otherwise it advances its own.
 */
export async function recording(
  source: TestDatabase,
  options: RecordingOptions,
): Promise<Recording> {
  const { target, inside, after, asking, ...pipelineOptions } = options;
  await target.query(
    'create table if not exists recorded(id int, commit_lsn pg_lsn)',
  );
  const checkpoints = new CheckpointTable(async (sql, values) => {
    await asking?.();
    return target.query(sql, values);
  });
  const pool = new Pool({ ...target.connection, max: 2 });
  pool.on('error', () => {});
  const committed: (readonly number[])[] = [];
  const failed: (readonly number[])[] = [];
  const pipeline = new Pipeline('test', {
    connection: { ...source.connection },
    slotName: `slot_${source.name}`,
    ...(options.decoder === undefined && { publication: 'p' }),
    goForwardOnly: true,
    ...pipelineOptions,
  });
  const ofLibrary = options.checkpointStore !== undefined;

  async function apply(transactions: readonly Transaction[]): Promise<void> {
    const client = await pool.connect();
    const ids: number[] = [];
    try {
      await client.query('begin');
      const fresh = ofLibrary
        ? transactions
        : await checkpoints.advance(
            (sql, values) => client.query(sql, values),
            transactions,
          );
      for (const transaction of fresh)
        ids.push(...(await record(client, transaction)));
      await inside?.({ transactions, ids });
      await client.query('commit');
    } catch (error) {
      failed.push(ids);
      await client.query('rollback');
      throw error;
    } finally {
      client.release();
    }
    committed.push(ids);
    await after?.({ transactions, ids });
  }

  pipeline.attach({
    name: 'RecordingSink',
    ...(ofLibrary
      ? {}
      : { checkpoint: { kind: 'keeper', keeper: checkpoints } }),
    ...(options.batchDelivery === undefined
      ? { transaction: (transaction: Transaction) => apply([transaction]) }
      : { batch: apply }),
  });
  onTestFinished(async () => {
    await pipeline.stop();
    await pool.end();
  });
  return { pipeline, committed, failed };
}

async function record(
  client: PoolClient,
  transaction: Transaction,
): Promise<number[]> {
  const ids: number[] = [];
  for await (const change of transaction.changes) {
    if (change.op === 'insert') ids.push(Number(change.record['id']));
  }
  await client.query(
    'insert into recorded select unnest($1::int[]), $2::text::pg_lsn',
    [ids, formatLsn(transaction.commitLsn)],
  );
  return ids;
}

/** Keeps the batches that a pipeline tells of. */
export function batchesOf(pipeline: Pipeline): PipelineEvents['batch'][] {
  const batches: PipelineEvents['batch'][] = [];
  pipeline.on('batch', (batch) => batches.push(batch));
  return batches;
}

/** The rows in the order of their commits, as often as they were recorded. */
export async function recorded(target: TestDatabase): Promise<number[]> {
  const rows = await target.query<{ id: number }>(
    'select id from recorded order by commit_lsn, id',
  );
  return rows.map(({ id }) => id);
}

/** Inserts each row in a transaction of its own. */
export async function insertEach(
  source: TestDatabase,
  ids: readonly number[],
): Promise<void> {
  for (const id of ids)
    await source.query('insert into t(id) values ($1)', [id]);
}
