import type { Change } from '../../lib/engine/model/change.js';
import type { Transaction } from '../../lib/engine/model/transaction.js';
import { capture, type Capture, type CaptureOptions } from './capture.js';
import type { SuiteServer } from './suite.js';
import type { TestDatabase } from './test-database.js';
import { changesOf } from './changes-of.js';

/** A source whose publication `p` is captured. */
export interface Streaming extends Capture {
  readonly source: TestDatabase;
  readonly target: TestDatabase;
  /** Runs statements at the source, and waits until what they committed is applied. */
  readonly run: (statements: string) => Promise<void>;
}

/** Creates what `setup` says in a new source, and captures `p`, which is for all tables unless `setup` creates it. */
export async function streaming(
  suite: SuiteServer,
  setup: string,
  options: Partial<CaptureOptions> = {},
): Promise<Streaming> {
  const source = await suite.database();
  const target = await suite.database('target');
  await source.query(setup);
  const found = await source.query(
    `select from pg_publication where pubname = 'p'`,
  );
  if (found.length === 0)
    await source.query('create publication p for all tables');
  const running = capture(source, { target, ...options });
  running.pipeline.start();
  await running.pipeline.whenStreaming();
  return {
    ...running,
    source,
    target,
    run: async (statements) => {
      await source.query(statements);
      await running.pipeline.caughtUp();
    },
  };
}

/** All changes of the transactions, in order. */
export function changesIn(transactions: readonly Transaction[]): Change[] {
  return transactions.flatMap((transaction) => [...changesOf(transaction)]);
}

/** What a change says about rows: its operation, and the rows that it carries. */
export function essence(change: Change): object {
  const { op, relation } = change;
  switch (change.op) {
    case 'insert':
      return { op, relation, record: change.record };
    case 'update': {
      const { record, unchanged, old } = change;
      return { op, relation, record, unchanged, old };
    }
    case 'delete':
      return { op, relation, old: change.old };
    case 'truncate': {
      const { cascade, restartIdentity, together } = change;
      return { op, relation, cascade, restartIdentity, together };
    }
  }
}
