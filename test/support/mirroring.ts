import type { SchemaChange } from '../../lib/engine/model/schema-change.js';
import { Pipeline } from '../../lib/engine/pipeline.js';
import { CheckpointTable } from '../../lib/engine/checkpoint/checkpoint-table.js';
import { onTestFinished } from 'vitest';
import { currentLsn } from './logical-slot.js';
import { CREATE_LEDGER, mirror } from './mirror.js';
import type { SuiteServer } from './suite.js';
import type { TestDatabase } from './test-database.js';

/** A source whose publication `p` is mirrored to a target by a pipeline in this process. */
export interface Mirroring {
  readonly source: TestDatabase;
  readonly target: TestDatabase;
  readonly pipeline: Pipeline;
  /** Runs statements at the source, and waits until the target has what they committed. */
  readonly run: (statements: string) => Promise<void>;
}

/** Adapts the target to a destructive schema change. */
export type Adapt = (
  change: SchemaChange,
  target: TestDatabase,
) => Promise<void>;

/**
 * Creates what `setup` says in a source and in a target, and mirrors `p`, which is for all tables.
 *
 * @param adapt - accepts schema changes
 */
export async function mirroring(
  suite: SuiteServer,
  setup: string,
  adapt?: Adapt,
): Promise<Mirroring> {
  const source = await suite.database();
  const target = await suite.database('target');
  await source.query(`${setup}; create publication p for all tables`);
  await target.query(`${setup}; ${CREATE_LEDGER}`);
  const pipeline = new Pipeline('test', {
    connection: { ...source.connection },
    slotName: `slot_${source.name}`,
    publication: 'p',
    goForwardOnly: true,
    types: 'text',
  });
  const checkpoints = new CheckpointTable((sql, values) =>
    target.query(sql, [...values]),
  );
  const client = await target.connect();
  pipeline.attach({
    name: 'Mirror',
    checkpoint: { kind: 'keeper', keeper: checkpoints },
    async transaction(transaction) {
      await client.query('begin');
      await mirror(client, checkpoints, transaction);
      await client.query('commit');
    },
    ...(adapt && {
      schemaChange: (change: SchemaChange) => adapt(change, target),
    }),
  });
  onTestFinished(() => pipeline.stop());
  pipeline.start();
  await pipeline.whenStreaming();
  return {
    source,
    target,
    pipeline,
    run: async (statements) => {
      await source.query(statements);
      await pipeline.caughtUp(await currentLsn(source));
    },
  };
}
