import type { Client } from 'pg';
import type { CheckpointQuery } from '../../lib/engine/checkpoint/checkpoint-query.js';
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
