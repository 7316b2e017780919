import type { TypesOption } from '../../options/pipeline-options.js';
import type { CaptureSet } from '../../server/capture/capture-set.js';
import type { PublishedTable } from '../../server/published-table.js';
import { readPublishedTables } from '../../server/published-tables.js';
import { requireReadable } from '../../server/readable-tables.js';
import type { SessionTarget } from '../../server/session.js';
import type { SnapshotMeter } from '../../telemetry/snapshot-meter.js';
import type { CopySession } from '../copy-session.js';
import { readRowMakers, type RowMakers } from '../row-makers.js';
import { openInSnapshot } from './adopted-snapshot.js';
import { largestFirst } from './largest-first.js';
import { copyTable, type TableCopyPorts } from './table-copy.js';
import { lockTables } from './table-locks.js';
import { requireUnaltered } from './unaltered-tables.js';

export type { InitialPage } from './table-copy.js';

/** A lock is free, or somebody waits for the session that has it. */
const LOCK_PATIENCE_MS = 2_000;

/** What a copy reads, and whom it tells. */
export interface InitialPorts extends TableCopyPorts {
  /** The copy ends when its signal is aborted. */
  readonly target: SessionTarget;
  readonly capture: CaptureSet;
  readonly types: TypesOption;
  /** Tables that are read at a time, each on a connection of its own. */
  readonly parallelTables: number;
  /** By the session that has created the slot; it may run no other command before the first page is delivered. */
  readonly exported: { readonly snapshotName: string };
  /** That the copy is complete, or is not, is the caller's to tell. */
  readonly meter: Pick<SnapshotMeter, 'begin' | 'rows' | 'tableDone'>;
}

/**
 * Copies every row that the exported snapshot sees. Whatever it ends with, it has closed its connections then, and no call of
 * `deliver` runs.
 *
 * @returns the tables
 * @throws {ConnectionFault} when a table was rewritten after the snapshot was taken, or the snapshot was gone before it was adopted: that
 * takes a new slot
 * @throws {HaltError} when a table cannot be read
 * @throws whatever `deliver` rejects with
 */
export function copyInitially(
  ports: InitialPorts,
): Promise<readonly PublishedTable[]> {
  return new InitialCopy(ports).run();
}

class InitialCopy {
  readonly #ports: InitialPorts;
  readonly #target: SessionTarget;
  /** Aborted when a part of the copy has failed: cuts all connections. */
  readonly #stop = new AbortController();
  readonly #sessions: CopySession[] = [];
  /** What failed first: the rest are consequences. */
  #failure: { readonly reason: unknown } | null = null;

  constructor(ports: InitialPorts) {
    this.#ports = ports;
    const { signal } = ports.target;
    this.#target = {
      ...ports.target,
      signal: AbortSignal.any([signal, this.#stop.signal]),
    };
  }

  async run(): Promise<readonly PublishedTable[]> {
    const names = await this.#watched(this.#copy()).catch(() => []);
    const failure = this.#failure;
    await Promise.all(this.#sessions.map((session) => session.close()));
    if (failure !== null) throw failure.reason;
    return names;
  }

  async #copy(): Promise<readonly PublishedTable[]> {
    const { capture, types, parallelTables, meter } = this.#ports;
    const first = await this.#open();
    const { commands } = first;
    const tables = await readPublishedTables(commands, capture);
    await requireReadable(commands, tables);
    await lockTables(commands, tables, 0);
    await requireUnaltered(commands, this.#target, capture, tables);
    const makers = await readRowMakers(commands, types, tables);
    const others = Math.min(parallelTables, tables.length) - 1;
    // All before the first page: once adopted, the snapshot outlives the session that exports it.
    const readers = await this.#sideBySide(
      Array.from({ length: Math.max(0, others) }, () =>
        this.#openBeside(tables),
      ),
    );
    meter.begin('initial', tables, []);
    const waiting = largestFirst(tables);
    await this.#sideBySide(
      [first, ...readers].map((reader) =>
        this.#readFrom(waiting, reader, makers),
      ),
    );
    return tables;
  }

  /** Each session has the locks of its own, for the same reason for which it must not wait for them. */
  async #openBeside(tables: readonly PublishedTable[]): Promise<CopySession> {
    const session = await this.#open();
    await lockTables(session.commands, tables, LOCK_PATIENCE_MS);
    return session;
  }

  async #open(): Promise<CopySession> {
    const { snapshotName } = this.#ports.exported;
    const session = await openInSnapshot(this.#target, snapshotName);
    this.#sessions.push(session);
    return session;
  }

  /** Reads one table after the other, until no more wait. */
  async #readFrom(
    waiting: PublishedTable[],
    reader: CopySession,
    makers: RowMakers,
  ): Promise<void> {
    for (;;) {
      const table = waiting.shift();
      if (table === undefined) return;
      await copyTable(reader, table, makers(table), this.#ports);
    }
  }

  /** The first of them to fail stops the others; settles when all have. */
  async #sideBySide<T>(works: readonly Promise<T>[]): Promise<T[]> {
    const watched = works.map((work) => this.#watched(work));
    await Promise.allSettled(watched);
    return Promise.all(watched);
  }

  async #watched<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (reason) {
      this.#failure ??= { reason };
      this.#stop.abort();
      throw reason;
    }
  }
}
