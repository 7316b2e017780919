import type { ChunkWork } from '../../deliver/work.js';
import { type Deferred, deferred } from '../../model/deferred.js';
import type { Lsn } from '../../model/lsn.js';
import { shownName } from '../../model/shown-name.js';
import { SnapshotRefusedError } from '../../model/snapshot-refused-error.js';
import type { TypesOption } from '../../options/pipeline-options.js';
import { readPublishedNames } from '../../server/published-names.js';
import {
  type CommandSession,
  type SessionTarget,
  withSqlSession,
} from '../../server/session.js';
import type { SourceWait } from '../../telemetry/source-wait.js';
import { withWatchedSession } from '../../server/watched-session.js';
import type { SnapshotMeter } from '../../telemetry/snapshot-meter.js';
import { BackfillEndedError } from './backfill-ended-error.js';
import { BackfillPlan, nameOf } from './backfill-plan.js';
import { BackfillReading } from './backfill-reading.js';
import { ChunkOutcomes } from './chunk-outcomes.js';
import { ChunkReader, type ReadableTable } from './chunk-reader.js';
import { ChunkWindow } from './chunk-window.js';
import { type CopyableTable, discover, makeCopyable } from './discovery.js';
import { HandOver } from './hand-over.js';
import type { PlannedTable } from './planned-table.js';
import type { SnapshotProgress } from '../../model/snapshot-progress.js';
import type { StreamWatch } from './stream-watch.js';
import { readNextXid } from './transactions.js';
import { WINDOW_BYTES } from './window-ports.js';

/** What a backfill is told, and what it asks of its connection. */
export interface BackfillPorts {
  readonly pipeline: string;
  readonly slotName: string;
  readonly target: SessionTarget;
  readonly publications: readonly string[];
  readonly types: TypesOption;
  readonly chunkRows: number;
  readonly maxPendingChunks: number;
  /** Where the slot begins; that of the progress counts when there is one. */
  readonly floor: Lsn;
  /** What is stored; `null` when nothing is. */
  readonly progress: SnapshotProgress | null;
  /** What commits up to here was applied, and is not handed over again; `null` for nothing. */
  readonly appliedThrough: Lsn | null;
  /** What commits from here on comes by the stream, also when it was applied. */
  readonly streamedFrom: Lsn;
  /** Nothing was ever delivered through this slot. */
  readonly fresh: boolean;
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

/** What there is to copy. */
interface Found {
  readonly plan: BackfillPlan;
  readonly copyable: readonly CopyableTable[];
  /** What chunks of all of them have to see; `null` for nothing. */
  readonly notBefore: bigint | null;
}

/** No transaction has this id. */
const NEVER = 2n ** 64n;

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
  /** Who waits until a table is copied. */
  readonly #waiters = new Map<PlannedTable, Deferred<void>>();
  #loop: Promise<void> = Promise.resolve();
  #ended = false;
  /** Commit of the transaction that was begun last. */
  #begun: Lsn = 0n;

  private constructor(ports: BackfillPorts, found: Found) {
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
      copied: (table) => this.#copied(table),
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
    const found = await withWatchedSession(ports.target, async (session) => {
      if (ports.progress?.complete === true)
        return everythingCopied(session, ports, ports.progress);
      const readable = await discover(session, ports.publications);
      const tables = readable.map(({ table }) => table);
      const plan = new BackfillPlan({ ...ports, tables });
      const open = readable.filter(
        ({ table }) => plan.find(table.oid)?.isDone === false,
      );
      const copyable = await makeCopyable(session, ports.types, open);
      const notBefore = await readNextXid(session);
      return { plan, copyable, notBefore };
    });
    return new Backfill(ports, found);
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
    const found = await withWatchedSession(this.#target, async (session) => {
      const readable = await discover(session, this.#ports.publications);
      const wanted = select(readable, names);
      return makeCopyable(session, this.#ports.types, wanted);
    }).catch((error: unknown) => {
      throw this.#ended ? new BackfillEndedError() : error;
    });
    if (this.#ended) throw new BackfillEndedError();
    const tables = found.map((one) => this.#addOne(one, begun));
    this.#list();
    if (tables.some(({ added }) => added)) this.#begin(false);
    await Promise.all(tables.map(({ done }) => done));
  }

  /** Ends reading. What was handed over stays where it is. Never rejects. */
  async stop(): Promise<void> {
    this.#end();
    await this.#loop;
    await this.#reader.close();
  }

  #addOne(
    copyable: CopyableTable,
    begun: Set<string>,
  ): { added: boolean; done: Promise<void> } {
    const { name } = copyable.table;
    const known = this.#plan.find(copyable.table.oid);
    if (begun.has(name) && this.#plan.isCopied(copyable.table))
      return {
        added: false,
        done:
          known !== null && this.#outcomes.isEnding(known)
            ? this.#taken(known)
            : Promise.resolve(),
      };
    const { table: planned, added } = this.#plan.add(copyable.table);
    if (!added) begun.add(name);
    else {
      const { oid } = planned.table;
      this.#copyable.set(oid, copyable);
      this.#window.track(planned.table, NEVER);
      this.#outcomes.clear(planned, () => {
        begun.add(name);
        void this.#allow(planned);
      });
    }
    return { added, done: this.#taken(planned) };
  }

  /** Resolves when the sink has taken all of a table. */
  #taken(planned: PlannedTable): Promise<void> {
    let waiter = this.#waiters.get(planned);
    if (waiter === undefined) {
      waiter = deferred();
      this.#waiters.set(planned, waiter);
    }
    return waiter.promise;
  }

  /** Finds out what chunks of an added table have to see: what the stream has brought before it was tracked. */
  async #allow(planned: PlannedTable): Promise<void> {
    try {
      const notBefore = await withSqlSession(this.#target, readNextXid);
      this.#window.usableFrom(planned.table.oid, notBefore);
      planned.notBefore = notBefore;
      this.#reading.wake();
    } catch (error) {
      this.#fail(error);
    }
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

  #copied(planned: PlannedTable): void {
    this.#waiters.get(planned)?.resolve();
    this.#waiters.delete(planned);
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
    for (const waiter of this.#waiters.values())
      waiter.reject(new BackfillEndedError());
  }
}

/** Nothing is read of tables then, so that no lock on one is waited for. */
async function everythingCopied(
  session: CommandSession,
  ports: BackfillPorts,
  progress: SnapshotProgress,
): Promise<Found> {
  const published = new Set(
    await readPublishedNames(session, ports.publications),
  );
  const tables = progress.tables.filter((one) => published.has(nameOf(one)));
  return {
    plan: new BackfillPlan({
      ...ports,
      tables: [],
      progress: { ...progress, tables },
    }),
    copyable: [],
    notBefore: null,
  };
}

/** The tables with these names. */
function select(
  readable: readonly ReadableTable[],
  names: readonly string[],
): readonly ReadableTable[] {
  const byName = new Map(readable.map((one) => [one.table.name, one]));
  return [...new Set(names)].map((name) => {
    const one = byName.get(name);
    if (one !== undefined) return one;
    throw new SnapshotRefusedError(
      `Nothing was copied: no publication of the pipeline carries a table ${JSON.stringify(shownName(name))}. Name it as changes do, such as public.orders; or add it to the publication.`,
    );
  });
}

function lackingOf({ state }: PlannedTable): readonly (readonly string[])[] {
  return state.state === 'reading' ? (state.lacking?.keys ?? []) : [];
}
