import type { ChunkWork } from '../../deliver/work.js';
import { ConnectionFault } from '../../model/connection-fault.js';
import { type Deferred, deferred } from '../../model/deferred.js';
import { HaltError } from '../../model/halt.js';
import type { Lsn } from '../../model/lsn.js';
import { shownName } from '../../model/shown-name.js';
import type { TypesOption } from '../../options/pipeline-options.js';
import type { PublishedTable } from '../../server/published-table.js';
import { readPublishedNames } from '../../server/published-names.js';
import {
  type CommandSession,
  type SessionTarget,
  withSqlSession,
} from '../../server/session.js';
import type { SnapshotMeter } from '../../telemetry/snapshot-meter.js';
import { BackfillPlan, nameOf } from './backfill-plan.js';
import { BackfillReading } from './backfill-reading.js';
import type { Chunk, ReadyChunk } from './chunk.js';
import { ChunkReader, type ReadableTable } from './chunk-reader.js';
import { ChunkWindow } from './chunk-window.js';
import { type CopyableTable, discover, makeCopyable } from './discovery.js';
import { HandOver } from './hand-over.js';
import type { Part, PlannedTable } from './planned-table.js';
import { identityOfTable } from './row-identity.js';
import type {
  LackingRows,
  SnapshotProgress,
} from '../../model/snapshot-progress.js';
import type { RowMessage, StreamWatch } from './stream-watch.js';
import { readNextXid } from './transactions.js';
import { type DiscardReason, WINDOW_BYTES } from './window-ports.js';

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

/** Times that a table without a key is copied while it is written to. */
const MOST_ATTEMPTS = 3;
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
  readonly #copyable = new Map<number, CopyableTable>();
  readonly #parts = new WeakMap<Chunk, Part>();
  /** Tables without a key of which the stream has brought nothing since the sink was told to remove what it has. */
  readonly #untouched = new Map<number, PlannedTable>();
  /** Tables of which the last rows were handed over and not taken. */
  readonly #ending = new Set<PlannedTable>();
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
    this.#window = new ChunkWindow(
      { ...WINDOW_BYTES, pendingChunks: ports.maxPendingChunks },
      {
        ready: (chunk) => this.#ready(chunk),
        askPosition: () => ports.askPosition(),
        discarded: (chunks, reason) => this.#discarded(chunks, reason),
        lackingChanged: (table) => this.#lackingChanged(table),
        lackingUncertain: (commitLsn) => this.#lackingUncertain(commitLsn),
      },
      ports.appliedThrough ?? 0n,
      plan.uncertain,
    );
    this.#handOver = new HandOver(plan, ports);
    this.#reader = new ChunkReader(this.#target);
    this.#reading = new BackfillReading({
      plan,
      window: this.#window,
      reader: this.#reader,
      chunkRows: ports.chunkRows,
      copyable: (table) => this.#copyableOf(table),
      read: (chunk, part) => this.#parts.set(chunk, part),
      complete: () => this.#complete(),
    });
    for (const one of copyable) this.#copyable.set(one.table.oid, one);
    for (const planned of plan.tables) {
      if (planned.isDone) continue;
      planned.notBefore = notBefore;
      this.#window.track(planned.table, notBefore, lackingOf(planned));
    }
    this.#list();
    if (!plan.isComplete) this.#begin();
    for (const planned of plan.uncleared) this.#clear(planned, () => {});
  }

  /**
   * Finds out what there is to copy, and hands over the calls by which the sink removes what it has of tables that are copied from their
   * beginning. To be awaited before the first transaction of the connection is delivered.
   *
   * @throws {HaltError} `preflight/select_privilege`, `preflight/row_security`, `publication/column_lists`
   */
  static async prepare(ports: BackfillPorts): Promise<Backfill> {
    const found = await withSqlSession(ports.target, async (session) => {
      if (ports.progress?.complete === true)
        return everythingCopied(session, ports, ports.progress);
      const readable = await discover(session, ports.publications);
      const tables = readable.map(({ table }) => table);
      const plan = new BackfillPlan({ ...ports, tables });
      const open = readable.filter(
        ({ table }) => plan.find(table.oid)?.isDone === false,
      );
      const copyable = await makeCopyable(session, ports.types, open);
      const notBefore = ports.fresh ? null : await readNextXid(session);
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
        if (this.#untouched.size > 0) this.#touch(message);
        window.change(message);
      },
      arriving: () => window.arriving(),
      ended: () => this.#transactionEnded(),
      commit: (message) => window.commit(message),
      keepalive: (position) => window.keepalive(position),
    };
  }

  /** Whether everything was handed over. */
  get isComplete(): boolean {
    return this.#plan.isComplete;
  }

  /** What copying waits for, for longer than a moment; `null` mostly. It names processes of the source, and no value. */
  get waitingFor(): string | null {
    return this.#reading.waitingFor;
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
   * @throws {Error} before anything is done, when a table is not published, and when the connection ends before they are copied
   * @throws {HaltError} as {@link prepare}
   */
  async add(
    names: readonly string[],
    begun: Set<string> = new Set(),
  ): Promise<void> {
    const found = await withSqlSession(this.#target, async (session) => {
      const readable = await discover(session, this.#ports.publications);
      const wanted = select(readable, names);
      return makeCopyable(session, this.#ports.types, wanted);
    });
    if (this.#ended) throw endedEarly();
    const tables = found.map((one) => this.#addOne(one, begun));
    this.#list();
    if (tables.some(({ added }) => added)) this.#begin();
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
          known !== null && this.#ending.has(known)
            ? this.#taken(known)
            : Promise.resolve(),
      };
    const { table: planned, added } = this.#plan.add(copyable.table);
    if (!added) begun.add(name);
    else {
      const { oid } = planned.table;
      this.#copyable.set(oid, copyable);
      this.#window.track(planned.table, NEVER);
      this.#clear(planned, () => {
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

  #begin(): void {
    const { copied, tables } = this.#plan;
    const done = tables.filter(({ isDone }) => isDone);
    this.#ports.meter.begin(
      'incremental',
      [
        ...copied.map((name) => ({ name, estimatedRows: null })),
        ...tables.map(({ table }) => table),
      ],
      [...copied, ...done.map(({ table }) => table.name)],
    );
  }

  #clear(planned: PlannedTable, taken: () => void): void {
    planned.state = { state: 'waiting' };
    planned.touched = false;
    if (planned.table.orderKey === null)
      this.#untouched.set(planned.table.oid, planned);
    this.#handOver.clearing(this.#copyableOf(planned), taken);
  }

  #ready(ready: ReadyChunk): void {
    const { chunk } = ready;
    const planned = this.#plan.find(chunk.table.oid);
    const part = this.#parts.get(chunk);
    if (this.#ended || planned === null || part === undefined) return;
    const again =
      part.kind === 'page' &&
      part.first &&
      (planned.touched || planned.inVain > 0);
    planned.handOver(part, chunk.rows, this.#lacking(planned));
    const done = planned.isDone;
    const { oid, name } = planned.table;
    if (done) {
      this.#window.untrack(oid);
      this.#ending.add(planned);
    }
    this.#handOver.rows(this.#copyableOf(planned), ready, again, (count) => {
      this.#window.taken(chunk);
      this.#ports.meter.rows(name, count);
      if (done) this.#tableDone(planned);
      this.#reading.wake();
    });
    this.#reading.wake();
  }

  #tableDone(planned: PlannedTable): void {
    this.#ending.delete(planned);
    this.#ports.meter.tableDone(planned.table.name);
    this.#waiters.get(planned)?.resolve();
    this.#waiters.delete(planned);
  }

  #discarded(chunks: readonly Chunk[], reason: DiscardReason): void {
    const [head] = chunks;
    for (const oid of new Set(chunks.map(({ table }) => table.oid)))
      this.#plan.find(oid)?.rewind();
    if (head === undefined) return;
    if (reason === 'memory') this.#reading.shrink(head.table.oid);
    if (reason === 'contended') this.#contended(head.table);
    this.#reading.wake();
  }

  #contended({ oid, name, quotedName }: PublishedTable): void {
    const planned = this.#plan.find(oid);
    if (planned === null) return;
    planned.inVain += 1;
    if (planned.inVain < MOST_ATTEMPTS)
      return this.#ports.meter.tableAgain(name);
    this.#fail(
      new HaltError('snapshot_table_contended', {
        detail: `${quotedName} was written to in each of ${MOST_ATTEMPTS} attempts`,
      }),
    );
  }

  #lackingChanged({ oid }: PublishedTable): void {
    const planned = this.#plan.find(oid);
    // Of a table that is read from its beginning nothing needs to be known.
    if (planned?.isReading !== true) return;
    if (this.#window.lacking(oid) === 'read-again') planned.beginAgain();
    else planned.lacks(this.#lacking(planned));
    this.#progress();
    this.#reading.wake();
  }

  /** Which rows it leaves without columns is known then, and what is stored next says so. */
  #transactionEnded(): void {
    const { uncertain } = this.#plan;
    const settles = uncertain !== null && this.#begun >= uncertain;
    if (settles) this.#plan.uncertainSince(null);
    this.#window.ended();
    if (settles) this.#progress();
  }

  #lackingUncertain(commitLsn: Lsn): void {
    if (!this.#plan.tables.some(({ isReading }) => isReading)) return;
    this.#plan.uncertainSince(commitLsn);
    this.#progress();
  }

  #progress(): void {
    if (!this.#ended) this.#handOver.progress();
  }

  #lacking({ table }: PlannedTable): LackingRows | null {
    const rows = this.#window.lacking(table.oid);
    return rows === 'read-again' || rows.length === 0
      ? null
      : {
          columns: identityOfTable(table).columns,
          keys: rows.map(({ identity }) =>
            identity.map((value) => value ?? ''),
          ),
        };
  }

  #complete(): void {
    this.#plan.complete();
    this.#handOver.complete(() => this.#ports.meter.complete());
  }

  /** The stream brings something of a table without a key. */
  #touch(message: RowMessage): void {
    const relations =
      message.kind === 'truncate' ? message.relations : [message.relation];
    for (const { oid } of relations) {
      const planned = this.#untouched.get(oid);
      if (planned !== undefined) planned.touched = true;
      this.#untouched.delete(oid);
    }
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
    this.#reading.stop();
    if (!this.#plan.isComplete) this.#ports.meter.interrupted();
    for (const waiter of this.#waiters.values()) waiter.reject(endedEarly());
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
    throw new Error(
      `No publication of the pipeline carries a table ${JSON.stringify(shownName(name))}: name it as changes do, such as public.orders.`,
    );
  });
}

function lackingOf({ state }: PlannedTable): readonly (readonly string[])[] {
  return state.state === 'reading' ? (state.lacking?.keys ?? []) : [];
}

function endedEarly(): ConnectionFault {
  return new ConnectionFault(
    'the connection ended before the tables were copied',
  );
}
