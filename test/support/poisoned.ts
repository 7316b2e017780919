import { onTestFinished } from 'vitest';
import type { Sink } from '../../lib/engine/deliver/sink.js';
import type { SinkCheckpoint } from '../../lib/engine/model/checkpoint.js';
import { formatLsn, type Lsn, parseLsn } from '../../lib/engine/model/lsn.js';
import type { Transaction } from '../../lib/engine/model/transaction.js';
import type { PipelineOptions } from '../../lib/engine/options/pipeline-options.js';
import { Pipeline } from '../../lib/engine/pipeline.js';
import { CheckpointTable } from '../../lib/engine/checkpoint/checkpoint-table.js';
import { CREATE_LEDGER } from './mirror.js';
import { sourceAndTarget, type SourceAndTarget } from './source-and-target.js';
import type { SuiteServer } from './suite.js';

/** What no sink of these tests can write. */
export const POISON = 'poison hunter2_planted';

/** Who keeps the checkpoint. */
export type Keeping = 'keeper' | 'reader' | 'library';

/** What differs from a mirror with default options. */
export interface PoisonedOptions extends Partial<PipelineOptions> {
  readonly keeping?: Keeping;
  readonly sink?: Partial<Sink>;
  /** Takes the place of the checkpoint table. */
  readonly table?: CheckpointTable;
  /** Those of an earlier process, or that a way was prepared to. */
  readonly databases?: SourceAndTarget;
}

/** A mirror of `t` whose sink fails at rows that say {@link POISON}. */
export interface Poisoned extends SourceAndTarget {
  readonly databases: SourceAndTarget;
  readonly pipeline: Pipeline;
  readonly slotName: string;
  /** Commit positions of every call of the handler. */
  readonly calls: Lsn[];
  /** Commit positions of the event `skipped`. */
  readonly skipped: Lsn[];
}

/** Fresh databases with `t`, its publication and the ledger. */
export async function poisonedDatabases(
  suite: SuiteServer,
): Promise<SourceAndTarget> {
  const databases = await sourceAndTarget(suite);
  await databases.target.query(
    `create table t(id int primary key, v text); ${CREATE_LEDGER}`,
  );
  return databases;
}

/** Builds the pipeline; it is not started. */
export async function poisoned(
  suite: SuiteServer,
  options: PoisonedOptions = {},
): Promise<Poisoned> {
  const { keeping = 'keeper', sink, table, databases, ...more } = options;
  const { source, target } = databases ?? (await poisonedDatabases(suite));
  const slotName = `slot_${source.name}`;
  const pipeline = new Pipeline('test', {
    connection: { ...source.connection },
    slotName,
    publication: 'p',
    goForwardOnly: true,
    types: 'text',
    ...(keeping === 'library' && {
      checkpointStore: { connection: { ...target.connection } },
    }),
    ...more,
  });
  const checkpoints =
    table ?? new CheckpointTable((sql, values) => target.query(sql, values));
  const client = await target.connect();
  const calls: Lsn[] = [];
  const skipped: Lsn[] = [];

  async function apply(transaction: Transaction): Promise<void> {
    if (keeping === 'keeper') {
      const isNew = await checkpoints.advance(
        (sql, values) => client.query(sql, [...values]),
        transaction,
      );
      if (!isNew) return;
    }
    let changes = 0;
    for await (const change of transaction.changes) {
      if (change.op !== 'insert') throw new Error('Only inserts are mirrored.');
      const { id, v } = change.record;
      if (v === POISON) throw new Error(`cannot write ${POISON}`);
      await client.query('insert into t values ($1, $2)', [id, v]);
      changes += 1;
    }
    await client.query('insert into ledger values ($1, $2, $3)', [
      slotName,
      formatLsn(transaction.commitLsn),
      changes,
    ]);
  }

  async function applyAll(transactions: readonly Transaction[]): Promise<void> {
    calls.push(...transactions.map(({ commitLsn }) => commitLsn));
    await client.query('begin');
    try {
      for (const transaction of transactions) await apply(transaction);
      await client.query('commit');
    } catch (error) {
      await client.query('rollback');
      throw error;
    }
  }

  async function lastInLedger(): Promise<Lsn | null> {
    const [row] = await target.query<{ lsn: string | null }>(
      'select max(commit_lsn)::text as lsn from ledger',
    );
    return parseLsn(row?.lsn ?? '');
  }

  const checkpoint: Record<Keeping, SinkCheckpoint | null> = {
    keeper: { kind: 'keeper', keeper: checkpoints },
    reader: { kind: 'reader', read: lastInLedger },
    library: null,
  };
  const own = checkpoint[keeping];
  pipeline.attach({
    name: 'PoisonedSink',
    ...(own !== null && { checkpoint: own }),
    transaction: (transaction) => applyAll([transaction]),
    batch: applyAll,
    ...sink,
  });
  pipeline.on('skipped', ({ lsn }) => skipped.push(lsn));
  onTestFinished(() => pipeline.stop());
  return {
    source,
    target,
    databases: { source, target },
    pipeline,
    slotName,
    calls,
    skipped,
  };
}
