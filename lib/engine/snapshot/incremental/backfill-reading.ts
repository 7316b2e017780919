import { type Deferred, deferred } from '../../model/deferred.js';
import { within } from '../../model/within.js';
import type {
  KeyColumn,
  PublishedTable,
} from '../../server/published-table.js';
import type { SourceWait } from '../../telemetry/source-wait.js';
import type { BackfillPlan, Lacking } from './backfill-plan.js';
import { ChunkLimit } from './chunk-limit.js';
import type { ChunkReader, ReadChunk } from './chunk-reader.js';
import type { ChunkWindow } from './chunk-window.js';
import type { CopyableTable } from './discovery.js';
import type { Part, PlannedTable } from './planned-table.js';
import type { LackingRow } from './lacking-rows.js';
import type { VisibleTransactions } from './visibility.js';

/** How often it is asked what has become visible, while rows are recorded that the stream has changed. */
const POLL_MS = 250;
/** How often at least, while chunks cannot be used. */
const LONGEST_DELAY_MS = 2_000;
/** Rows that lack columns which are read at a time. */
const MOST_KEYS = 1_000;

/** What reading works with. */
export interface ReadingPorts {
  readonly plan: BackfillPlan;
  readonly window: ChunkWindow;
  readonly reader: ChunkReader;
  readonly chunkRows: number;
  /** What is read of a table. */
  copyable(table: PlannedTable): CopyableTable;
  /** A chunk is about to be given to the window. */
  read(chunk: ReadChunk['chunk'], part: Part): void;
  /** Everything was handed over. */
  complete(): void;
  /** What reading waits for, again and again while it does; `null` when it does not any more. */
  waiting(wait: SourceWait | null): void;
}

/** Reads chunk after chunk, as the plan says and as far as the window has room. */
export class BackfillReading {
  readonly #ports: ReadingPorts;
  readonly #limits = new Map<number, ChunkLimit>();
  readonly #stopped = deferred<void>();
  #woken: Deferred<void> = deferred();
  #isStopped = false;
  /** Times in a row that a chunk could not be used. */
  #inVain = 0;
  /** The lowest transaction that was in progress when a snapshot was taken last. */
  #xmin = 0n;
  /** Of the wait for transactions to end, ISO 8601; `null` while there is none. */
  #waitsSince: string | null = null;

  constructor(ports: ReadingPorts) {
    this.#ports = ports;
  }

  /** Something has changed by which the plan may have something to do. */
  wake(): void {
    this.#woken.resolve();
  }

  stop(): void {
    this.#isStopped = true;
    this.#waitIsOver();
    this.#stopped.resolve();
    this.wake();
  }

  /** Chunks of the table are smaller from now on. */
  shrink(oid: number): void {
    this.#limits.get(oid)?.shrink();
  }

  /** Runs until it is stopped. Rejects when reading fails. */
  async run(): Promise<void> {
    const { plan, window } = this.#ports;
    const lacking: Lacking = ({ oid }) => {
      const rows = window.lacking(oid);
      return rows === 'read-again' ? rows : rows.length;
    };
    while (!this.#isStopped) {
      this.#woken = deferred();
      const step = plan.next(lacking);
      if (step.kind === 'complete') this.#ports.complete();
      else if (step.kind === 'wait') await this.#rest();
      else if (step.kind === 'begin-again') {
        step.table.beginAgain();
        window.readAgain(step.table.table.oid);
      } else if (!window.mayRead) await this.#wait();
      else if (await this.#canBeUsed(step.table)) {
        if (step.kind === 'rows') await this.#readRows(step.table);
        else if (step.kind === 'keys') await this.#readKeys(step.table);
        else await this.#readWhole(step.table);
      }
    }
  }

  async #readRows(table: PlannedTable): Promise<void> {
    const limit = this.#limitOf(table);
    const { rows: most } = limit;
    const { orderKey } = table.table;
    const read = await this.#read(({ reader }) =>
      reader.behind(
        this.#ports.copyable(table),
        orderKey ?? [],
        table.readBehind,
        most,
      ),
    );
    const { rows, bytes } = read.chunk;
    limit.saw(rows.length, bytes);
    const last = read.whole && rows.length < most;
    await this.#use(table, read, { kind: 'rows', last });
  }

  async #readKeys(table: PlannedTable): Promise<void> {
    const lacking = this.#lackingOf(table);
    // They were read, and a transaction that made them was not visible yet.
    if (lacking.length >= table.lackedBefore) await this.#pause(POLL_MS);
    table.lackedBefore = lacking.length;
    const limit = this.#limitOf(table);
    const keys = lacking
      .slice(0, Math.min(limit.rows, MOST_KEYS))
      .map(({ identity }) => identity.map((value) => value ?? ''));
    const read = await this.#read(({ reader }) =>
      reader.withKeys(
        this.#ports.copyable(table),
        keyToFind(table.table),
        keys,
      ),
    );
    limit.saw(read.chunk.rows.length, read.chunk.bytes);
    await this.#use(table, read, { kind: 'keys' });
  }

  /** Reads until the end, or until the stream brings something of the table. */
  async #readWhole(table: PlannedTable): Promise<void> {
    const { inVain } = table;
    const pages = this.#ports.reader.whole(this.#ports.copyable(table));
    try {
      for (let first = true; ; first = false) {
        // No other snapshot is taken meanwhile: what these pages do not see has to be kept.
        while (!this.#ports.window.mayRead && !this.#isStopped)
          await this.#wait('without a snapshot');
        if (this.#isStopped || table.inVain > inVain) return;
        const page = await this.#read(() => pages.next());
        if (page.done === true) return this.#ports.window.notReading();
        const last = page.value.whole;
        const part: Part = { kind: 'page', first, last };
        if (!(await this.#use(table, page.value, part)) || last) return;
      }
    } finally {
      await pages.return();
    }
  }

  async #read<T>(work: (ports: ReadingPorts) => Promise<T>): Promise<T> {
    const { window } = this.#ports;
    window.reading();
    try {
      return await work(this.#ports);
    } catch (error) {
      window.notReading();
      throw error;
    }
  }

  /** Gives a chunk to the window, which may hand it over at once. */
  async #use(
    table: PlannedTable,
    { chunk }: ReadChunk,
    part: Part,
  ): Promise<boolean> {
    this.#xmin = chunk.visible.xmin;
    const { mark } = table;
    table.read(part, chunk.rows);
    this.#ports.read(chunk, part);
    if (this.#ports.window.add(chunk) === 'pending') {
      this.#inVain = 0;
      return true;
    }
    table.backTo(mark);
    this.#inVain += 1;
    await this.#pause(this.#delay);
    return false;
  }

  /** Whether a chunk that is read now sees what it has to see. Waits a while when it does not. */
  async #canBeUsed({ notBefore }: PlannedTable): Promise<boolean> {
    const { reader } = this.#ports;
    if (typeof notBefore !== 'bigint' || this.#xmin >= notBefore) return true;
    const { xmin } = await this.#poll();
    if (xmin >= notBefore) {
      this.#waitIsOver();
      this.#inVain = 0;
      return true;
    }
    this.#waitsSince ??= new Date().toISOString();
    const holder = await reader.holder(xmin);
    // It may have been stopped meanwhile.
    const since = this.#waitsSince;
    if (since !== null) this.#ports.waiting({ ...holder, what: 'copy', since });
    this.#inVain += 1;
    await this.#pause(this.#delay);
    return false;
  }

  #waitIsOver(): void {
    if (this.#waitsSince === null) return;
    this.#waitsSince = null;
    this.#ports.waiting(null);
  }

  async #rest(): Promise<void> {
    if (!this.#ports.plan.isComplete) return this.#wait();
    await this.#ports.reader.close();
    await this.#woken.promise;
  }

  /** Waits for a change, or for a while. */
  async #wait(polling?: 'without a snapshot'): Promise<void> {
    const isWoken = await within(this.#woken.promise, POLL_MS);
    if (isWoken) this.#woken = deferred();
    else if (polling === undefined && this.#needsPolling) await this.#poll();
  }

  async #poll(): Promise<VisibleTransactions> {
    const { window, reader } = this.#ports;
    const { visible, flushed } = await reader.poll();
    this.#xmin = visible.xmin;
    window.polled(visible);
    window.flushed(flushed);
    return visible;
  }

  async #pause(ms: number): Promise<void> {
    await within(this.#stopped.promise, ms);
  }

  get #needsPolling(): boolean {
    const { changedBytes, awaitsFlush } = this.#ports.window;
    return changedBytes > 0 || awaitsFlush;
  }

  get #delay(): number {
    return Math.min(
      POLL_MS * 2 ** Math.min(this.#inVain - 1, 8),
      LONGEST_DELAY_MS,
    );
  }

  #lackingOf({ table }: PlannedTable): readonly LackingRow[] {
    const rows = this.#ports.window.lacking(table.oid);
    return rows === 'read-again' ? [] : rows;
  }

  #limitOf({ table }: PlannedTable): ChunkLimit {
    let limit = this.#limits.get(table.oid);
    if (limit === undefined) {
      limit = new ChunkLimit(this.#ports.chunkRows, table.estimatedRowBytes);
      this.#limits.set(table.oid, limit);
    }
    return limit;
  }
}

/** Columns by which rows of a table are found again, in its order. */
function keyToFind(table: PublishedTable): readonly KeyColumn[] {
  const { columns, identityKey, orderKey } = table;
  return (
    identityKey ??
    columns.flatMap(
      ({ name }) => orderKey?.find((key) => key.name === name) ?? [],
    )
  );
}
