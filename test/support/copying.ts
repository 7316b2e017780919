import { type ClientBase, escapeIdentifier, Pool } from 'pg';
import { onTestFinished } from 'vitest';
import type { CheckpointQuery } from '../../lib/engine/checkpoint/checkpoint-query.js';
import { CheckpointTable } from '../../lib/engine/checkpoint/checkpoint-table.js';
import type { AttachedSink } from '../../lib/engine/deliver/sink.js';
import type {
  AnySnapshotRow,
  SnapshotContext,
} from '../../lib/engine/model/snapshot.js';
import type { Transaction } from '../../lib/engine/model/transaction.js';
import type { PipelineOptions } from '../../lib/engine/options/pipeline-options.js';
import { Pipeline } from '../../lib/engine/pipeline.js';
import { applyByKey } from './keyed-mirror.js';
import { putRows } from './put-rows.js';
import type { TestDatabase } from './test-database.js';

/** One call of `@OnSnapshot()`. */
export interface CopyCall {
  readonly rows: readonly AnySnapshotRow[];
  readonly context: SnapshotContext;
}

/** What differs from a mirror that applies everything by key. */
export interface CopyingOptions extends Partial<PipelineOptions> {
  readonly target: TestDatabase;
  /** Runs before rows are written; rejects to fail the call. */
  readonly beforeRows?: (call: CopyCall) => Promise<void>;
  /** Runs when rows and progress are committed; rejects to fail the call after its work. */
  readonly afterRows?: (call: CopyCall) => Promise<void>;
  readonly beforeTransaction?: (transaction: Transaction) => Promise<void>;
  /** What else the sink is and is asked. */
  readonly sink?: Partial<AttachedSink>;
}

/** A pipeline that copies a source and mirrors what changes. */
export interface Copying {
  readonly pipeline: Pipeline;
  /** Calls whose rows were committed, in order. */
  readonly copied: CopyCall[];
  /** Transactions that were applied, in order. */
  readonly applied: Transaction[];
  readonly checkpoints: CheckpointTable;
}

/**
 * Builds a pipeline over the publication `p` with the slot `slot_<database>` that copies what exists, initially unless the options say
 * otherwise, into tables of the same names, which need a primary key. Stops when the test has finished.
 */
export function copying(
  source: TestDatabase,
  options: CopyingOptions,
): Copying {
  const { target, beforeRows, afterRows, beforeTransaction, sink, ...more } =
    options;
  const pipeline = new Pipeline('test', {
    connection: { ...source.connection },
    slotName: `slot_${source.name}`,
    ...(more.decoder === undefined && { publication: 'p' }),
    types: 'text',
    snapshot: true,
    ...more,
  });
  const checkpoints = new CheckpointTable((sql, values) =>
    target.query(sql, [...values]),
  );
  const pool = new Pool({ ...target.connection, max: 4 });
  pool.on('error', () => {});
  const copied: CopyCall[] = [];
  const applied: Transaction[] = [];
  const ownCheckpoint =
    more.checkpointStore === undefined && sink?.checkpoint === undefined;
  pipeline.attach({
    name: 'CopyingSink',
    ...(ownCheckpoint && {
      checkpoint: { kind: 'keeper', keeper: checkpoints },
    }),
    async snapshot(rows, context) {
      const call = { rows, context };
      await beforeRows?.(call);
      await inTransaction(pool, async (client) => {
        if (context.firstForTable)
          await client.query(`delete from ${tableNamed(context.relation)}`);
        await putRows(client, rows);
        if (ownCheckpoint)
          await checkpoints.keepProgress(queryOf(client), context);
      });
      copied.push(call);
      await afterRows?.(call);
    },
    async transaction(transaction) {
      await beforeTransaction?.(transaction);
      await inTransaction(pool, async (client) => {
        if (
          ownCheckpoint &&
          !(await checkpoints.advance(queryOf(client), transaction))
        )
          return;
        for await (const change of transaction.changes)
          await applyByKey(client, change);
        applied.push(transaction);
      });
    },
    ...sink,
  });
  onTestFinished(async () => {
    await pipeline.stop();
    await pool.end();
  });
  return { pipeline, copied, applied, checkpoints };
}

/** Of `schema.table` without a dot in either. */
function tableNamed(relation: string): string {
  return relation.split('.').map(escapeIdentifier).join('.');
}

function queryOf(client: ClientBase): CheckpointQuery {
  return (sql, values) => client.query(sql, [...values]);
}

async function inTransaction(
  pool: Pool,
  work: (client: ClientBase) => Promise<void>,
): Promise<void> {
  const client = await pool.connect();
  let broken = true;
  try {
    await client.query('begin');
    await work(client);
    await client.query('commit');
    broken = false;
  } finally {
    client.release(broken);
  }
}
