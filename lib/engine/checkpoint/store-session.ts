import type { Client } from 'pg';
import type { CheckpointHome } from '../model/checkpoint.js';
import { quoteIdentifier } from '../server/identifiers.js';
import {
  closeClient,
  commandSession,
  openClient,
  tornDownOnAbort,
  type SessionTarget,
} from '../server/session.js';
import { readCheckpointHome } from './checkpoint-home.js';
import { locateCheckpointTable } from './checkpoint-location.js';
import type { CheckpointLocation } from './checkpoint-location.js';
import type { CheckpointQuery } from './checkpoint-query.js';
import { requireCheckpointShape } from './checkpoint-shape.js';
import { storeStatements } from './checkpoint-statements.js';
import type { StoreStatements } from './checkpoint-statements.js';
import { storeProgressStatements } from './progress-statements.js';
import type { ProgressStatements } from './progress-statements.js';

/** The checkpoint table, as a session of the library has found it. */
export interface OpenedStore {
  readonly query: CheckpointQuery;
  readonly statements: StoreStatements;
  readonly progress: ProgressStatements;
  readonly location: CheckpointLocation;
  readonly home: CheckpointHome;
}

/**
 * The session in which the library keeps its own checkpoint: opened when it is needed, kept, and opened anew after any failure. It
 * finds or creates the table and probes its shape each time it is opened.
 */
export class StoreSession {
  readonly #target: SessionTarget;
  readonly #quotedTable: string;
  #current: { readonly client: Client; readonly store: OpenedStore } | null =
    null;

  constructor(target: SessionTarget, table: string) {
    this.#target = target;
    this.#quotedTable = quoteIdentifier(table, 'checkpointStore.table');
  }

  /** Runs work, one at a time. Rejects as the work does, and when the signal of the target is aborted. */
  async run<T>(work: (store: OpenedStore) => Promise<T>): Promise<T> {
    const { signal } = this.#target;
    signal.throwIfAborted();
    const { client, store } = (this.#current ??= await this.#open());
    try {
      return await tornDownOnAbort(client, signal, () => work(store));
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  /** Never rejects. */
  async close(): Promise<void> {
    const current = this.#current;
    this.#current = null;
    if (current !== null) await closeClient(current.client);
  }

  async #open(): Promise<{ client: Client; store: OpenedStore }> {
    const client = await openClient(this.#target, 'sql');
    // One that is lost while nothing runs is no failure of the next call.
    const lost = (): void => {
      if (this.#current?.client === client) void this.close();
    };
    client.once('error', lost).once('end', lost);
    try {
      const store = await tornDownOnAbort(client, this.#target.signal, () =>
        this.#find(client),
      );
      return { client, store };
    } catch (error) {
      await closeClient(client);
      throw error;
    }
  }

  async #find(client: Client): Promise<OpenedStore> {
    const session = commandSession(client);
    const query: CheckpointQuery = (sql, values) => session.query(sql, values);
    const location = await locateCheckpointTable(query, this.#quotedTable);
    await requireCheckpointShape(query, location);
    return {
      query,
      statements: storeStatements(location.quotedName),
      progress: storeProgressStatements(location.quotedName),
      location,
      home: await readCheckpointHome(query, location),
    };
  }
}
