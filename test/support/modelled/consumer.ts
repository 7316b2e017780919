import { ChunkWindow } from '../../../lib/engine/snapshot/incremental/chunk-window.js';
import type {
  DiscardReason,
  WindowLimits,
  WindowPorts,
} from '../../../lib/engine/snapshot/incremental/window-ports.js';
import type {
  Chunk,
  ReadyChunk,
} from '../../../lib/engine/snapshot/incremental/chunk.js';
import type { RawRow } from '../../../lib/engine/snapshot/raw-row.js';
import type { Lsn } from '../../../lib/engine/model/lsn.js';
import type { DurableState, ModelProgress } from './durable-state.js';
import type { ModelTable } from './messages.js';
import type { ModelReader } from './reader.js';
import { ServerStream } from './server-stream.js';
import type { LoggedCommit, ModelRow, ModelSource } from './source.js';

type ModelWork =
  | { kind: 'transaction'; commit: LoggedCommit; complete: boolean }
  | {
      kind: 'chunk';
      ready: ReadyChunk | null;
      first: boolean;
      progress: ModelProgress;
    };

interface ReadingChunk {
  readonly chunk: Chunk | null;
  readonly kind: 'ordered' | 'keys' | 'page';
  readonly bound: number | null;
  readonly last: boolean;
}

/** One connection: the window, what reads chunks, and what hands over. */
export class ModelConsumer {
  readonly window: ChunkWindow;
  readonly stream: ServerStream;
  readonly #works: ModelWork[] = [];
  /** Chunks that wait in the window. */
  #waiting: { chunk: Chunk; bound: number | null; last: boolean }[] = [];
  #reading: ReadingChunk | null = null;
  /** Up to where chunks were handed over, and up to where they were read. */
  #readyBound: number | null;
  #readBound: number | null;
  #isRead = false;
  #isReady = false;
  #first = true;
  /** Pages of a keyless table that were read with one snapshot. */
  #pages: Chunk[] = [];
  #open: { commit: LoggedCommit; work: ModelWork | null } | null = null;
  /** How often reading began anew. */
  readonly discards: DiscardReason[] = [];

  constructor(
    private readonly source: ModelSource,
    private readonly table: ModelTable,
    private readonly durable: DurableState,
    limits: WindowLimits,
    private readonly reader: ModelReader,
    /** How many transactions that were applied come again. */
    again: number,
  ) {
    const { checkpoint, progress } = durable;
    const first = source.log.findIndex(
      ({ commitLsn }) => commitLsn > checkpoint,
    );
    const next = first < 0 ? source.log.length : first;
    this.stream = new ServerStream(
      source,
      Math.max(durable.slotBegins, next - again),
    );
    const isUncertain =
      progress.uncertain !== null && checkpoint >= progress.uncertain;
    this.#readyBound = isUncertain ? null : progress.bound;
    this.#readBound = this.#readyBound;
    const ports: WindowPorts = {
      ready: (ready) => this.#ready(ready),
      askPosition: () => this.stream.ask(),
      discarded: (chunks, reason) => {
        this.discards.push(reason);
        this.#waiting.splice(this.#waiting.length - chunks.length);
        this.#goBack();
      },
      lackingChanged: () => {
        if (this.window.lacking(table.published.oid) === 'read-again') {
          this.discards.push('lacking');
          this.window.readAgain(table.published.oid);
          this.#readyBound = null;
          this.#goBack();
        }
        this.#push(null, null);
      },
      lackingUncertain: (commitLsn) => this.#push(null, commitLsn),
    };
    this.window = new ChunkWindow(limits, ports, checkpoint);
    if (!progress.done)
      this.window.track(
        table.published,
        source.nextXid,
        isUncertain ? [] : progress.lacking,
      );
  }

  get isDone(): boolean {
    return this.durable.progress.done;
  }

  /** A frame arrives. */
  receive(arriving: boolean): void {
    const frame = this.stream.arrive();
    if (frame === null) return;
    const { window } = this;
    if (frame.kind === 'keepalive') {
      window.keepalive(frame.position);
      return;
    }
    const { commit } = frame;
    switch (frame.kind) {
      case 'begin':
        window.begin({
          kind: 'begin',
          finalLsn: commit.commitLsn,
          commitTimeMicros: 0n,
          xid: Number(commit.xid & 0xffff_ffffn),
        });
        this.#open = { commit, work: null };
        return;
      case 'change':
        window.change(this.table.message(frame.change));
        if (arriving) this.#handOver(false);
        return;
      case 'commit':
        window.ended();
        this.#handOver(true);
        this.#open = null;
        window.commit({
          kind: 'commit',
          commitLsn: commit.commitLsn,
          endLsn: commit.endLsn,
          commitTimeMicros: 0n,
        });
    }
  }

  /** A chunk is read, in two steps. */
  read(): void {
    const { window, source } = this;
    if (this.#reading === null) {
      if (!window.active || !window.mayRead || this.#nextRead() === null)
        return;
      if (this.#pages.length === 0) window.reading();
      this.#reading = {
        chunk: null,
        kind: 'ordered',
        bound: null,
        last: false,
      };
      return;
    }
    if (this.#reading.chunk !== null) return;
    if (source.isTableLocked) return;
    const kind = this.#nextRead();
    // Pages are not read before the log is flushed: nobody could ask for it then.
    if (kind === 'page' && this.#pages.length === 0 && !source.isFlushed)
      return;
    if (kind === null) {
      window.notReading();
      this.#reading = null;
      return;
    }
    this.#reading = this.#takeSnapshot(kind);
  }

  /** What was read arrives. */
  add(): void {
    const reading = this.#reading;
    if (reading === null || reading.chunk === null) return;
    const { chunk, bound, last } = reading;
    this.#reading = null;
    const before = this.#waiting.length;
    this.#waiting.push({ chunk, bound, last });
    const previous = { bound: this.#readBound, isRead: this.#isRead };
    if (reading.kind === 'ordered') this.#readBound = bound;
    if (reading.kind !== 'keys') this.#isRead = last;
    const answer = this.window.add(chunk, this.#pages.length > 0);
    if (answer === 'pending') return;
    this.#waiting.splice(before);
    this.#readBound = previous.bound;
    this.#isRead = previous.isRead;
    if (reading.kind !== 'page') return;
    this.window.notReading();
    this.#goBack();
  }

  poll(): void {
    // While something is read it is for nothing.
    if (this.#reading !== null) return;
    this.window.polled(this.source.snapshot());
    this.window.flushed(this.source.flushed);
  }

  /** The sink takes one work. */
  take(): boolean {
    const [work] = this.#works;
    if (work === undefined) return false;
    const { durable } = this;
    if (work.kind === 'transaction') {
      if (!work.complete) return false;
      this.#works.shift();
      for (const change of work.commit.changes)
        if (this.table.kind === 'keyless') durable.keyless.apply(change);
        else durable.sink.apply(change);
      durable.checkpoint = work.commit.commitLsn;
      return true;
    }
    this.#works.shift();
    if (work.first) durable.keyless.clear();
    if (work.ready !== null) {
      this.#apply(work.ready);
      this.window.taken(work.ready.chunk);
    }
    durable.progress = work.progress;
    return true;
  }

  #apply({ chunk, rows, fills }: ReadyChunk): void {
    const rowOf = (raw: RawRow): ModelRow => this.reader.rowOf(chunk, raw);
    for (const raw of rows)
      if (this.table.kind === 'keyless') this.durable.keyless.put(rowOf(raw));
      else this.durable.sink.put(rowOf(raw));
    for (const { row, columns } of fills) {
      if (columns.join() !== '2') throw new Error('Other columns are filled.');
      const { id, large } = rowOf(row);
      this.durable.sink.fill(id, large);
    }
  }

  #handOver(complete: boolean): void {
    if (this.#open === null) return;
    const { commit, work } = this.#open;
    if (commit.commitLsn <= this.durable.checkpoint) return;
    if (work?.kind === 'transaction') {
      work.complete = complete;
      return;
    }
    if (!complete) this.window.arriving();
    this.#open.work = { kind: 'transaction', commit, complete };
    this.#works.push(this.#open.work);
  }

  #ready(ready: ReadyChunk): void {
    const waiting = this.#waiting.shift();
    if (waiting?.chunk !== ready.chunk)
      throw new Error('Another chunk was ready.');
    this.#readyBound = waiting.bound;
    this.#isReady = waiting.last;
    const { oid } = this.table.published;
    const lacking = this.window.lacking(oid);
    const done = this.#isReady && lacking.length === 0;
    if (done) this.window.untrack(oid);
    this.#push(ready, null, done);
  }

  #push(ready: ReadyChunk | null, uncertain: Lsn | null, done = false): void {
    const lacking = this.window.lacking(this.table.published.oid);
    if (lacking === 'read-again' && uncertain === null)
      throw new Error('It was not read again.');
    const keys = lacking === 'read-again' ? [] : lacking;
    const first = ready !== null && this.#first;
    if (ready !== null) this.#first = false;
    this.#works.push({
      kind: 'chunk',
      ready,
      first: first && this.table.kind === 'keyless',
      progress: {
        bound: this.#readyBound,
        lacking: keys.map(({ identity }) => identity),
        uncertain,
        done,
      },
    });
  }

  #goBack(): void {
    this.#readBound = this.#readyBound;
    this.#isRead = false;
    this.#isReady = false;
    this.#first = true;
    if (this.table.kind !== 'keyless') return;
    this.#pages = [];
    this.#reading = null;
    this.window.notReading();
  }

  #nextRead(): ReadingChunk['kind'] | null {
    if (this.table.kind === 'keyless') return this.#isRead ? null : 'page';
    if (!this.#isRead) return 'ordered';
    if (!this.#isReady || this.#waiting.length > 0) return null;
    // Also when the stream has brought all that was lacking: the end of the table comes with a chunk.
    return this.window.lacking(this.table.published.oid) === 'read-again'
      ? null
      : 'keys';
  }

  #takeSnapshot(kind: ReadingChunk['kind']): ReadingChunk {
    const { reader } = this;
    if (kind === 'ordered') {
      const chunk = reader.behind(this.#readBound);
      const last = chunk.rows.length < reader.chunkRows;
      const bound = reader.lastId(chunk) ?? this.#readBound;
      return { chunk, kind, bound, last };
    }
    if (kind === 'keys') {
      const lacking = this.window.lacking(this.table.published.oid);
      if (lacking === 'read-again') throw new Error('It was not read again.');
      const keys = lacking.map(({ identity }) => identity);
      const chunk = reader.withKeys(keys.slice(0, reader.chunkRows));
      return { chunk, kind, bound: this.#readBound, last: true };
    }
    if (this.#pages.length === 0) this.#pages = reader.pages();
    const chunk = this.#pages.shift() ?? null;
    return { chunk, kind, bound: null, last: this.#pages.length === 0 };
  }
}
