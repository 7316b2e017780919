import { onTestFinished } from 'vitest';
import { Pool } from 'pg';
import type { SinkCheckpoint } from '../../lib/engine/model/checkpoint.js';
import type { Transaction } from '../../lib/engine/model/transaction.js';
import { formatLsn } from '../../lib/engine/model/lsn.js';
import type { PipelineOptions } from '../../lib/engine/options/pipeline-options.js';
import { Pipeline } from '../../lib/engine/pipeline.js';
import { CheckpointTable } from '../../lib/engine/checkpoint/checkpoint-table.js';
import type { TestDatabase } from './test-database.js';

/** What differs from a copy with default options. */
export interface CopyOptions extends Partial<PipelineOptions> {
  /** Where copy, ledger and checkpoint are. */
  readonly target: TestDatabase;
  /** Runs inside the sink's transaction, before it commits. */
  readonly beforeCommit?: (transaction: Transaction) => Promise<void>;
  /** Replaces what the pipeline reads at connect; the sink's own transaction goes by the checkpoint table still. */
  readonly checkpoint?: SinkCheckpoint;
}

/** Builds a pipeline whose sink copies the inserts of `t` and keeps a ledger, in one transaction with the checkpoint. */
export async function copy(
  source: TestDatabase,
  options: CopyOptions,
): Promise<Pipeline> {
  const { target, beforeCommit, checkpoint, ...pipelineOptions } = options;
  await target.query(
    `create table if not exists copied(id int primary key);
     create table if not exists ledger(commit_lsn pg_lsn not null, outcome text not null, changes int not null)`,
  );
  const slotName = `slot_${source.name}`;
  const checkpoints = new CheckpointTable((sql, values) =>
    target.query(sql, values),
  );
  if (checkpoint !== undefined) await identify(source, checkpoints, slotName);
  const pool = new Pool({ ...target.connection, max: 2 });
  pool.on('error', () => {});
  const pipeline = new Pipeline('test', {
    connection: { ...source.connection },
    slotName,
    publication: 'p',
    goForwardOnly: true,
    ...pipelineOptions,
  });
  pipeline.attach({
    name: 'CopySink',
    checkpoint: checkpoint ?? { kind: 'keeper', keeper: checkpoints },
    async transaction(transaction) {
      const client = await pool.connect();
      try {
        await client.query('begin');
        const isNew = await checkpoints.advance(
          (sql, values) => client.query(sql, values),
          transaction,
        );
        let changes = 0;
        if (isNew) {
          for await (const change of transaction.changes) {
            changes += 1;
            if (change.op !== 'insert') continue;
            await client.query('insert into copied values ($1)', [
              change.record['id'],
            ]);
          }
        }
        await client.query(
          'insert into ledger values ($1::text::pg_lsn, $2, $3)',
          [
            formatLsn(transaction.commitLsn),
            isNew ? 'applied' : 'skipped',
            changes,
          ],
        );
        await beforeCommit?.(transaction);
        await client.query('commit');
      } catch (error) {
        await client.query('rollback');
        throw error;
      } finally {
        client.release();
      }
    },
  });
  onTestFinished(async () => {
    await pipeline.stop();
    await pool.end();
  });
  return pipeline;
}

/** Without a keeper the pipeline does not introduce the table to its server. */
async function identify(
  source: TestDatabase,
  checkpoints: CheckpointTable,
  slotName: string,
): Promise<void> {
  const [row] = await source.query<{ id: string }>(
    'select system_identifier::text as id from pg_control_system()',
  );
  checkpoints.identify({
    pipeline: 'test',
    slotName,
    systemIdentifier: row?.id ?? '',
    timeline: 1,
  });
  await checkpoints.load();
}

/** What a copy did, counted in its database. */
export interface CopyResult {
  readonly ids: readonly number[];
  /** Transactions that took effect more than once. */
  readonly appliedTwice: number;
  readonly applied: number;
  readonly skipped: number;
}

export async function copyResult(target: TestDatabase): Promise<CopyResult> {
  const ids = await target.query<{ id: number }>(
    'select id from copied order by id',
  );
  const [ledger] = await target.query<{
    twice: number;
    applied: number;
    skipped: number;
  }>(
    `select (count(*) filter (where outcome = 'applied')
               - count(distinct commit_lsn) filter (where outcome = 'applied'))::int as twice,
            (count(*) filter (where outcome = 'applied'))::int as applied,
            (count(*) filter (where outcome = 'skipped'))::int as skipped
       from ledger`,
  );
  return {
    ids: ids.map(({ id }) => id),
    appliedTwice: ledger?.twice ?? 0,
    applied: ledger?.applied ?? 0,
    skipped: ledger?.skipped ?? 0,
  };
}

/** The numbers from one to another, both included. */
export function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}
