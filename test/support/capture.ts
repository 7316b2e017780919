import { onTestFinished } from 'vitest';
import type { AttachedSink, Sink } from '../../lib/engine/deliver/sink.js';
import type { SinkCheckpoint } from '../../lib/engine/model/checkpoint.js';
import type { Transaction } from '../../lib/engine/model/transaction.js';
import type { PipelineOptions } from '../../lib/engine/options/pipeline-options.js';
import { Pipeline } from '../../lib/engine/pipeline.js';
import { CheckpointTable } from '../../lib/engine/checkpoint/checkpoint-table.js';
import type { TestDatabase } from './test-database.js';
import { changesOf } from './changes-of.js';

/** What happens to a transaction between its delivery and its checkpoint. */
export type Apply = (transaction: Transaction) => Promise<void>;

/** What differs from a sink that keeps every transaction and a pipeline with default options. */
export interface CaptureOptions extends Partial<PipelineOptions> {
  /** Where the checkpoint table is. */
  readonly target: TestDatabase;
  /** Runs before the checkpoint is advanced; rejects to fail the transaction. */
  readonly apply?: Apply;
  /** Is asked about destructive schema changes. */
  readonly schemaChange?: NonNullable<Sink['schemaChange']>;
  /** Replaces the checkpoint table. There is none with `checkpointStore`. */
  readonly checkpoint?: SinkCheckpoint;
  /** What else the sink is and is asked. */
  readonly sink?: Partial<Sink>;
}

/** A pipeline of the engine with a sink that keeps what it is given. */
export interface Capture {
  readonly pipeline: Pipeline;
  /** Transactions whose checkpoint was advanced, in order. */
  readonly applied: Transaction[];
  /** Every call of the handler, in order. */
  readonly calls: Transaction[];
  readonly checkpoints: CheckpointTable;
}

/** Builds a pipeline over the publication `p` with the slot `slot_<database>`; it stops when the test has finished. */
export function capture(
  source: TestDatabase,
  options: CaptureOptions,
): Capture {
  const {
    target,
    apply,
    schemaChange,
    checkpoint,
    sink: more,
    ...pipelineOptions
  } = options;
  const pipeline = new Pipeline('test', {
    connection: { ...source.connection },
    slotName: `slot_${source.name}`,
    ...(options.decoder === undefined && { publication: 'p' }),
    goForwardOnly: true,
    ...pipelineOptions,
  });
  const checkpoints = new CheckpointTable((sql, values) =>
    target.query(sql, [...values]),
  );
  const applied: Transaction[] = [];
  const calls: Transaction[] = [];
  const ownCheckpoint =
    checkpoint === undefined && options.checkpointStore === undefined;
  const sink: AttachedSink = {
    name: 'TestSink',
    ...(ownCheckpoint && {
      checkpoint: { kind: 'keeper', keeper: checkpoints },
    }),
    ...(checkpoint && { checkpoint }),
    async transaction(transaction) {
      calls.push(transaction);
      await apply?.(transaction);
      if (ownCheckpoint) {
        const isNew = await checkpoints.advance(
          (sql, values) => target.query(sql, [...values]),
          transaction,
        );
        if (!isNew) return;
      }
      applied.push(transaction);
    },
    ...(schemaChange && { schemaChange }),
    ...more,
  };
  pipeline.attach(sink);
  onTestFinished(() => pipeline.stop());
  return { pipeline, applied, calls, checkpoints };
}

/** The value of a column in every insert of the transactions, in order. */
export function inserted(
  transactions: readonly Transaction[],
  column: string,
): unknown[] {
  return transactions.flatMap((transaction) =>
    changesOf(transaction).flatMap((change) =>
      change.op === 'insert' ? [change.record[column]] : [],
    ),
  );
}
