import { onTestFinished } from 'vitest';
import { Pool } from 'pg';
import type { PipelineOptions } from '../../lib/engine/options/pipeline-options.js';
import { Pipeline } from '../../lib/engine/pipeline.js';
import { CheckpointTable } from '../../lib/engine/checkpoint/checkpoint-table.js';
import { bulkMirror } from './bulk-mirror.js';
import type { Mirrored } from './mirrored.js';
import type { TestDatabase } from './test-database.js';

/** What differs from a mirror with default options. */
export interface BulkOptions extends Partial<PipelineOptions> {
  /** Told how many rows of a transaction were read, before they are written. */
  readonly seen?: (rows: number) => Promise<void> | void;
}

/** A pipeline in this process that mirrors large transactions. */
export interface BulkMirroring {
  readonly pipeline: Pipeline;
  /** How many transactions were handed to the sink. */
  readonly calls: () => number;
}

/** As the application of `mirrored` with `BULK`, in this process; it streams. */
export async function bulkMirroring(
  { source, target, slotName }: Mirrored,
  { seen, ...options }: BulkOptions = {},
): Promise<BulkMirroring> {
  const pool = new Pool({ ...target.connection, max: 2 });
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  const checkpoints = new CheckpointTable((sql, values) =>
    pool.query(sql, [...values]),
  );
  const pipeline = new Pipeline('test', {
    connection: { ...source.connection },
    slotName,
    publication: 'p',
    goForwardOnly: true,
    types: 'text',
    ...options,
  });
  let calls = 0;
  pipeline.attach({
    name: 'BulkMirror',
    checkpoint: { kind: 'keeper', keeper: checkpoints },
    async transaction(transaction) {
      calls += 1;
      const client = await pool.connect();
      try {
        await client.query('begin');
        await bulkMirror(client, checkpoints, transaction, seen);
        await client.query('commit');
        client.release();
      } catch (error) {
        client.release(true);
        throw error;
      }
    },
  });
  onTestFinished(async () => {
    await pipeline.stop();
    await pool.end();
  });
  pipeline.start();
  await pipeline.whenStreaming();
  return { pipeline, calls: () => calls };
}

/** Inserts rows into `t` in one transaction. */
export async function insertRows(
  source: TestDatabase,
  first: number,
  count: number,
  padBytes = 32,
): Promise<void> {
  await source.query(
    'insert into t select g, rpad(md5(g::text), $3, md5(g::text)) from generate_series($1::int, $2::int) g',
    [first, first + count - 1, padBytes],
  );
}

/** What is in `t`, in a few numbers that tell two tables apart. */
export async function sumsOf(database: TestDatabase): Promise<unknown> {
  const [sums] = await database.query(
    'select count(*)::int, count(distinct id)::int as ids, sum(id) as sum, sum(hashtext(pad)) as pads from t',
  );
  return sums;
}
