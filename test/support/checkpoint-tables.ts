import type { Client } from 'pg';
import { onTestFinished } from 'vitest';
import type { CheckpointQuery } from '../../lib/engine/checkpoint/checkpoint-query.js';
import { createCheckpointTable } from '../../lib/engine/checkpoint/checkpoint-statements.js';
import {
  CheckpointTable,
  type AppliedTransaction,
} from '../../lib/engine/checkpoint/checkpoint-table.js';
import type { TestDatabase } from './test-database.js';
import { waitFor } from './wait-for.js';

/** The source that checkpoints belong to unless a test says otherwise. */
export const SOURCE = { systemIdentifier: '7000000000000000001', timeline: 1 };

/** Another source. */
export const OTHER_SOURCE = {
  systemIdentifier: '7000000000000000002',
  timeline: 1,
};

export interface TableSettings {
  /** @default the pool of the database */
  readonly query?: CheckpointQuery;
  /** Name of the table. */
  readonly name?: string;
  /** @default 'orders' */
  readonly slotName?: string;
  /** @default SOURCE */
  readonly source?: {
    readonly systemIdentifier: string;
    readonly timeline: number;
  };
}

/** A checkpoint table as a pipeline leaves it after the connect. */
export async function connectedTable(
  database: TestDatabase,
  settings: TableSettings = {},
): Promise<CheckpointTable> {
  const { name, slotName = 'orders', source = SOURCE } = settings;
  const table = new CheckpointTable(
    settings.query ?? pooled(database),
    name === undefined ? {} : { table: name },
  );
  table.identify({ pipeline: slotName, slotName, ...source });
  await table.load();
  return table;
}

/** A query function that returns rows and takes any connection. */
export function pooled(database: TestDatabase): CheckpointQuery {
  return (sql, values) => database.query(sql, values);
}

/** A query function that returns `{ rows }` and stays on one connection. */
export function through(client: Client): CheckpointQuery {
  return (sql, values) => client.query(sql, values);
}

export function transaction(
  commitLsn: bigint,
  commitEndLsn: bigint | null,
  slotName = 'orders',
): AppliedTransaction {
  return { slotName, commitLsn, commitEndLsn };
}

/** Waits until a session of the database waits for a lock. */
export async function untilBlocked(database: TestDatabase): Promise<void> {
  await waitFor(
    async () => {
      const waiting = await database.query(
        `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
      return waiting.length > 0;
    },
    { message: 'a session to wait for a lock' },
  );
}

/** Creates the table as it was before the progress of snapshots was stored in it. */
export async function createOldTable(database: TestDatabase): Promise<void> {
  const present = createCheckpointTable('public.replicant_checkpoints');
  await database.query(present.replace('  snapshot_progress text,\n', ''));
  if (await hasProgressColumn(database))
    throw new Error('The table of an earlier version has no such column.');
}

export async function hasProgressColumn(
  database: TestDatabase,
): Promise<boolean> {
  const columns = await database.query(
    `SELECT FROM pg_attribute WHERE attrelid = 'public.replicant_checkpoints'::regclass
      AND attname = 'snapshot_progress' AND NOT attisdropped`,
  );
  return columns.length > 0;
}

/** A role that may write checkpoints and owns no table; it is dropped when the test has finished. */
export async function checkpointWriter(
  database: TestDatabase,
): Promise<string> {
  const role = `writer_${database.name}`;
  await database.query(
    `CREATE ROLE ${role} LOGIN; GRANT SELECT, INSERT, UPDATE ON replicant_checkpoints TO ${role}`,
  );
  onTestFinished(async () => {
    await database.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
  });
  return role;
}
