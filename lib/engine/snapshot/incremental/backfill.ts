import type { ChunkWork } from '../../deliver/work.js';
import type { Lsn } from '../../model/lsn.js';
import type { SessionTarget } from '../../server/session.js';
import type { SnapshotMeter } from '../../telemetry/snapshot-meter.js';
import type { SourceWait } from '../../telemetry/source-wait.js';
import { AddedTables } from './added-tables.js';
import type { BackfillPlan } from './backfill-plan.js';
import { BackfillReading } from './backfill-reading.js';
import { ChunkOutcomes } from './chunk-outcomes.js';
import { ChunkReader } from './chunk-reader.js';
import { ChunkWindow } from './chunk-window.js';
import type { CopyableTable } from './discovery.js';
import {
  type FindingPorts,
  findTables,
  type FoundTables,
} from './found-tables.js';
import { HandOver } from './hand-over.js';
import type { PlannedTable } from './planned-table.js';
import type { StreamWatch } from './stream-watch.js';
import { WINDOW_BYTES } from './window-ports.js';

/** What a backfill is told, and what it asks of its connection. */
export interface BackfillPorts extends FindingPorts {
  readonly pipeline: string;
  readonly slotName: string;
  readonly chunkRows: number;
  readonly maxPendingChunks: number;
  readonly meter: SnapshotMeter;
  /** Takes work in the order of the stream: behind everything that {@link Backfill.watch} was told. */
  deliver(work: ChunkWork): void;
  /** Asks the server for its position. */
  askPosition(): void;
  /** Names of the tables that are copied or are going to be, as changes have them. Called again when there are more. */
  listed(names: readonly string[]): void;
  /** What copying waits for: for transactions to end that were open when the connection began. `null` when it does not any more. */
  waiting(wait: SourceWait | null): void;
  /** Called once: reading has failed, and nothing more is delivered. */
  failed(error: unknown): void;
}

/**
 * Copies tables in chunks beside the stream of one connection. It reads on a connection of its own, writes nothing to the source, and goes
 * on where the progress ends that the sink has stored.
 */
export class Backfill {
  readonly #ports: BackfillPorts;
  readonly #abort = new AbortController();
  readonly #target: SessionTarget;
  readonly #plan: BackfillPlan;
  readonly #window: ChunkWindow;
  readonly #reader: ChunkReader;
  readonly #reading: BackfillReading;
  readonly #handOver: HandOver;
  readonly #outcomes: ChunkOutcomes;
  readonly #copyable = new Map<number, CopyableTable>();
  readonly #added: AddedTables;
  #loop: Promise<void> = Promise.resolve();
  #ended = false;
  /** Commit of the transaction that was begun last. */
  #begun: Lsn = 0n;

  private constructor(ports: BackfillPorts, found: FoundTables) {
    const { plan, copyable, notBefore } = found;
    this.#ports = ports;
    this.#target = {
      ...ports.target,
      signal: AbortSignal.any([ports.target.signal, this.#abort.signal]),
    };
    this.#plan = plan;
    this.#handOver = new HandOver(plan, ports);
    this.#outcomes = new ChunkOutcomes({
      plan,
      handOver: this.#handOver,
      meter: ports.meter,
      window: () => this.#window,
      reading: () => this.#reading,
      copyable: (table) => this.#copyableOf(table),
      copied: (table) => this.#added.copied(table),
      failed: (error) => this.#fail(error),
    });
    this.#window = new ChunkWindow(
      { ...WINDOW_BYTES, pendingChunks: ports.maxPendingChunks },
      {
        ready: (chunk) => this.#outcomes.ready(chunk),
        askPosition: () => ports.askPosition(),
        discarded: (chunks, why) => this.#outcomes.discarded(chunks, why),
        lackingChanged: (table) => this.#outcomes.lackingChanged(table),
        lackingUncertain: (lsn) => this.#outcomes.lackingUncertain(lsn),
      },
      ports.appliedThrough ?? 0n,
      plan.uncertain,
    );
    this.#reader = new ChunkReader(this.#target);
    this.#reading = new BackfillReading({
      plan,
      window: this.#window,
      reader: this.#reader,
      chunkRows: ports.chunkRows,
      copyable: (table) => this.#copyableOf(table),
      read: (chunk, part) => this.#outcomes.read(chunk, part),
      complete: () => this.#complete(),
      waiting: (wait) => ports.waiting(wait),
    });
    this.#added = new AddedTables({
      ...ports,
      target: this.#target,
      plan,
      window: this.#window,
      outcomes: this.#outcomes,
      copyable: (one) => this.#copyable.set(one.table.oid, one),
      asked: (added) => {
        this.#list();
        if (added) this.#begin(false);
      },
      allowed: () => this.#reading.wake(),
      failed: (error) => this.#fail(error),
    });
    for (const one of copyable) this.#copyable.set(one.table.oid, one);
    for (const planned of plan.tables) {
      if (planned.isDone) continue;
      planned.notBefore = notBefore;
      this.#window.track(planned.table, notBefore, lackingOf(planned));
    }
    this.#list();
    if (!plan.isComplete) this.#begin(ports.progress !== null);
    for (const planned of plan.uncleared)
      this.#outcomes.clear(planned, () => {});
  }

  /**
   * Finds out what there is to copy, and hands over the calls by which the sink removes what it has of tables that are copied from their
   * beginning. To be awaited before the first transaction of the connection is delivered.
   *
   * @throws {HaltError} `preflight/select_privilege`, `preflight/row_security`, `publication/column_lists`
   */
  static async prepare(ports: BackfillPorts): Promise<Backfill> {
    return new Backfill(ports, await findTables(ports));
  }

  /** Has to be told everything that the stream brings, from its beginning. */
  get watch(): StreamWatch {
    const window = this.#window;
    return {
      get active() {
        return window.active;
      },
      begin: (message) => {
        this.#begun = message.finalLsn;
        window.begin(message);
      },
      change: (message) => {
        this.#outcomes.touch(message);
        window.change(message);
      },
      arriving: () => window.arriving(),
      ended: () => this.#transactionEnded(),
      commit: (message) => window.commit(message),
      keepalive: (position) => window.keepalive(position),
    };
  }

  /** Begins to read. */
  start(): void {
    this.#loop = this.#reading.run().catch((error: unknown) => {
      this.#fail(error);
    });
  }

  /**
   * Copies tables that were never copied, or copies them once more, while the stream goes on. Resolves when the sink has taken all of them;
   * a table that is being copied is only waited for.
   *
   * @param names - `schema.table`
   * @param begun - names for which that was asked before, on another connection: they are copied when the progress says so. Those that are
   * cleared now, or are being copied, are added
   * @throws {SnapshotRefusedError} before anything is done, when a table is not published
   * @throws {HaltError} as {@link prepare}, before anything is done
   * @throws {BackfillEndedError} when the connection ends before they are copied
   */
  async add(
    names: readonly string[],
    begun: Set<string> = new Set(),
  ): Promise<void> {
    await this.#added.add(names, begun);
  }

  /** Ends reading. What was handed over stays where it is. Never rejects. */
  async stop(): Promise<void> {
    this.#end();
    await this.#loop;
    await this.#reader.close();
  }

  #list(): void {
    const { copied, tables } = this.#plan;
    this.#ports.listed([...copied, ...tables.map(({ table }) => table.name)]);
  }

  #begin(resumed: boolean): void {
    const { copied, tables } = this.#plan;
    const done = tables.filter(({ isDone }) => isDone);
    this.#ports.meter.begin(
      'incremental',
      [
        ...copied.map((name) => ({ name, estimatedRows: null })),
        ...tables.map(({ table }) => table),
      ],
      [...copied, ...done.map(({ table }) => table.name)],
      resumed,
    );
  }

  /** Which rows it leaves without columns is known then, and what is stored next says so. */
  #transactionEnded(): void {
    const { uncertain } = this.#plan;
    const settles = uncertain !== null && this.#begun >= uncertain;
    if (settles) this.#plan.uncertainSince(null);
    this.#window.ended();
    if (settles) this.#outcomes.progress();
  }

  #complete(): void {
    this.#plan.complete();
    this.#handOver.complete(() => this.#ports.meter.complete());
  }

  #copyableOf({ table }: PlannedTable): CopyableTable {
    const copyable = this.#copyable.get(table.oid);
    if (copyable === undefined)
      throw new Error('a table is copied that was not looked at');
    return copyable;
  }

  #fail(error: unknown): void {
    if (this.#ended) return;
    this.#end();
    this.#ports.failed(error);
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#abort.abort();
    this.#outcomes.end();
    this.#reading.stop();
    if (!this.#plan.isComplete) this.#ports.meter.interrupted();
    this.#added.end();
  }
}

function lackingOf({ state }: PlannedTable): readonly (readonly string[])[] {
  return state.state === 'reading' ? (state.lacking?.keys ?? []) : [];
}
