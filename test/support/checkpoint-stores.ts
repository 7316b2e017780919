import { onTestFinished } from 'vitest';
import { PostgresCheckpointStore } from '../../lib/engine/checkpoint/checkpoint-store.js';
import type { ConnectionOption } from '../../lib/engine/options/pipeline-options.js';
import { SOURCE } from './checkpoint-tables.js';
import type { TestDatabase } from './test-database.js';

export interface StoreSettings {
  /** @default the connection of the database */
  readonly connection?: ConnectionOption;
  readonly table?: string;
  /** @default 0 */
  readonly maxRetries?: number;
  /** @default 20 */
  readonly retryBackoffMs?: number;
  /** @default 'orders' */
  readonly slotName?: string;
  /** @default SOURCE */
  readonly source?: {
    readonly systemIdentifier: string;
    readonly timeline: number;
  };
}

/** A store as a pipeline opens it. */
export interface TestStore {
  readonly store: PostgresCheckpointStore;
  /** Attempts that were told to fail and to be made again. */
  readonly retries: { readonly reason: string; readonly attempt: number }[];
  /** What a pipeline aborts when it has stopped. */
  readonly abort: AbortController;
}

/** Names the sessions of stores. */
export const STORE_SESSION = 'nestjs-replicant test store';

/** A store that was told its server and not read yet; it is closed when the test has finished. */
export function identifiedStore(
  database: TestDatabase,
  settings: StoreSettings = {},
): TestStore {
  const { slotName = 'orders', source = SOURCE } = settings;
  const abort = new AbortController();
  const retries: TestStore['retries'] = [];
  const store = new PostgresCheckpointStore({
    target: {
      connection: settings.connection ?? { ...database.connection },
      applicationName: STORE_SESSION,
      signal: abort.signal,
    },
    options: {
      table: settings.table ?? 'replicant_checkpoints',
      maxRetries: settings.maxRetries ?? 0,
      retryBackoffMs: settings.retryBackoffMs ?? 20,
    },
    retrying: (reason, attempt) => retries.push({ reason, attempt }),
  });
  store.identify({ pipeline: slotName, slotName, ...source });
  onTestFinished(() => store.close());
  return { store, retries, abort };
}

/** A store as a pipeline leaves it after the connect. */
export async function connectedStore(
  database: TestDatabase,
  settings: StoreSettings = {},
): Promise<TestStore> {
  const opened = identifiedStore(database, settings);
  await opened.store.load();
  return opened;
}

/** No commit beyond what is stored can be written from now on (a fault without a hook in the code). */
export async function refuseCommits(database: TestDatabase): Promise<void> {
  const [row] = await database.query<{ lsn: string | null }>(
    'SELECT max(commit_lsn) AS lsn FROM replicant_checkpoints',
  );
  const allowed = row?.lsn ?? '0/0';
  await database.query(
    `ALTER TABLE replicant_checkpoints ADD CONSTRAINT refused CHECK (commit_lsn <= '${allowed}') NOT VALID`,
  );
}

/** Ends {@link refuseCommits}. */
export async function allowCommits(database: TestDatabase): Promise<void> {
  await database.query(
    'ALTER TABLE replicant_checkpoints DROP CONSTRAINT refused',
  );
}

/** The sessions of a name in a database. */
export async function sessionsNamed(
  database: TestDatabase,
  name = STORE_SESSION,
): Promise<number[]> {
  const rows = await database.query<{ pid: number }>(
    `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1`,
    [name],
  );
  return rows.map(({ pid }) => pid);
}
