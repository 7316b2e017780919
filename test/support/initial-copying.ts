import { PublicationSet } from '../../lib/engine/server/capture/publication-set.js';
import { onTestFinished } from 'vitest';
import { createSlot } from '../../lib/engine/server/slot.js';
import {
  copyInitially,
  type InitialPage,
  type InitialPorts,
} from '../../lib/engine/snapshot/initial/initial-copy.js';
import { ReplicationSession } from '../../lib/engine/source/replication-session.js';
import type { TestDatabase } from './test-database.js';
import { waitFor } from './wait-for.js';

export const SLOT = 'copied';
const EXPORTER = 'exporter';
const COPIER = 'copier';

/** A slot whose snapshot is exported as long as the session runs no other command. */
export interface Exported {
  readonly session: ReplicationSession;
  readonly snapshotName: string;
}

/** Creates a slot that exports a snapshot. */
export async function exportSnapshot(source: TestDatabase): Promise<Exported> {
  const session = await ReplicationSession.open({
    connection: { ...source.connection },
    applicationName: EXPORTER,
    signal: new AbortController().signal,
  });
  onTestFinished(() => session.destroy());
  const { snapshotName } = await createSlot(session.commands, SLOT, {
    plugin: 'pgoutput',
    failover: false,
    exportSnapshot: true,
  });
  if (snapshotName === null) throw new Error('No snapshot was exported.');
  return { session, snapshotName };
}

/** What a copy has delivered, and how it was told. */
export class Copying {
  readonly pages: InitialPage[] = [];
  /** What the meter was told, in order. */
  readonly told: string[] = [];
  /** Calls of `deliver` that run. */
  running = 0;
  readonly abort = new AbortController();
  /** Runs inside `deliver`. */
  during: (page: InitialPage) => Promise<void> | void = () => {};

  constructor(
    private readonly source: TestDatabase,
    private readonly exported: Pick<Exported, 'snapshotName'>,
  ) {}

  /** Copies the publication `p`. */
  run(ports: Partial<InitialPorts> = {}): ReturnType<typeof copyInitially> {
    return copyInitially({
      target: {
        connection: { ...this.source.connection },
        applicationName: COPIER,
        signal: this.abort.signal,
      },
      capture: new PublicationSet(['p']),
      types: 'text',
      parallelTables: 1,
      exported: this.exported,
      deliver: (page) => this.#deliver(page),
      meter: {
        begin: (mode, tables) =>
          this.told.push(
            `${mode}: ${tables.map(({ name }) => name).join(', ')}`,
          ),
        rows: () => {},
        tableDone: (table) => this.told.push(`done: ${table}`),
      },
      ...ports,
    });
  }

  /** The rows of a table, as records. */
  records(relation: string): Record<string, unknown>[] {
    return this.pages
      .filter((page) => page.relation === relation)
      .flatMap(({ rows }) => rows.map(({ record }) => record));
  }

  async #deliver(page: InitialPage): Promise<void> {
    this.running += 1;
    try {
      this.pages.push(page);
      await this.during(page);
    } finally {
      this.running -= 1;
    }
  }
}

/** Server processes of a copy, the one that holds the locks first. */
export async function copyBackends(source: TestDatabase): Promise<number[]> {
  const rows = await source.query<{ pid: number }>(
    'select pid from pg_stat_activity where application_name = $1 order by backend_start',
    [COPIER],
  );
  return rows.map(({ pid }) => pid);
}

/** Waits until no session of a copy is left, as after its end. */
export async function copyGone(source: TestDatabase): Promise<void> {
  await waitFor(async () => (await copyBackends(source)).length === 0, {
    message: 'the sessions of the copy to end',
  });
}
