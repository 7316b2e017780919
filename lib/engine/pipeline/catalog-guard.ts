import { setTimeout as sleep } from 'node:timers/promises';
import type { Lsn } from '../model/lsn.js';
import type { CatalogTable } from '../model/relation.js';
import { withSqlSession } from '../server/session.js';
import { readInsertPosition } from '../server/wal-end.js';
import type { ConnectionSubject } from './subject.js';

/** What the catalog says of the captured tables. */
export interface CatalogState {
  readonly tables: readonly CatalogTable[];
  /** Whether a table of a captured name is gone: dropped, or called something else. */
  readonly lacksTables: boolean;
  /** Whatever made them so is in the WAL before this position. */
  readonly asOf: Lsn;
}

/** Looks at the catalog from time to time, where an output plugin does not show all that becomes of a table. */
export class CatalogGuard {
  readonly #subject: Pick<ConnectionSubject, 'capture' | 'target'>;
  readonly #intervalMs: number;
  readonly #seen: (state: CatalogState) => void;
  readonly #abort = new AbortController();

  private constructor(
    subject: Pick<ConnectionSubject, 'capture' | 'target'>,
    intervalMs: number,
    seen: (state: CatalogState) => void,
  ) {
    this.#subject = subject;
    this.#intervalMs = intervalMs;
    this.#seen = seen;
  }

  /** `null` where the plugin shows it. */
  static create(
    subject: Pick<ConnectionSubject, 'capture' | 'target'>,
    seen: (state: CatalogState) => void,
  ): CatalogGuard | null {
    const { schemaCheckInterval } = subject.capture;
    return schemaCheckInterval === null
      ? null
      : new CatalogGuard(subject, schemaCheckInterval, seen);
  }

  start(): void {
    void this.#run();
  }

  stop(): void {
    this.#abort.abort();
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    const { signal } = this.#abort;
    while (!signal.aborted) {
      try {
        await sleep(this.#intervalMs, undefined, { signal, ref: false });
        const state = await this.#look();
        if (!signal.aborted) this.#seen(state);
      } catch {
        // The connection has ended; or this look failed, and the next one sees the same.
      }
    }
  }

  #look(): Promise<CatalogState> {
    const { capture, target } = this.#subject;
    const signal = AbortSignal.any([target.signal, this.#abort.signal]);
    return withSqlSession({ ...target, signal }, async (session) => {
      const names = await capture.names(session);
      const tables = await capture.catalog(session);
      const lacksTables = tables.length < names.length;
      return { tables, lacksTables, asOf: await readInsertPosition(session) };
    });
  }
}
