import type { Lsn } from '../../model/lsn.js';
import type {
  BeginMessage,
  CommitMessage,
} from '../../model/replication-message.js';
import type { PublishedTable } from '../../server/published-table.js';
import type { RawRow } from '../raw-row.js';
import type { Chunk, ReadyChunk } from './chunk.js';
import { type LackingRow, LackingRows } from './lacking-rows.js';
import { RequiredTransactions } from './required-transactions.js';
import { rowKey } from './row-identity.js';
import { StreamPosition, type Waiting } from './stream-position.js';
import type { RowMessage, StreamWatch } from './stream-watch.js';
import { TrackedTable } from './tracked-table.js';
import { sees, type VisibleTransactions } from './visibility.js';

/** How much is held for chunks. */
export interface WindowLimits {
  /** Chunks that wait for the stream or for the sink. */
  readonly pendingChunks: number;
  /** Bytes of their rows. */
  readonly pendingBytes: number;
  /** Bytes of what is kept of rows that the stream has changed. */
  readonly changedBytes: number;
  /** Bytes of the keys of rows that lack columns, for each table. */
  readonly lackingBytes: number;
}

/** Limits beside the number of chunks. */
export const WINDOW_BYTES = {
  pendingBytes: 16 * 1024 * 1024,
  changedBytes: 16 * 1024 * 1024,
  lackingBytes: 1024 * 1024,
} as const satisfies Partial<WindowLimits>;

/**
 * Why chunks were thrown away:
 *
 * - `contended`: a table whose rows cannot be told apart was changed
 * - `identity`: the stream tells the rows of the table apart in another way
 * - `memory`: too many rows were changed while chunks waited
 * - `lacking`: too many rows lack columns: the table has to be read from its beginning
 */
export type DiscardReason = 'contended' | 'identity' | 'memory' | 'lacking';

/** What a window asks of whoever reads chunks and hands them over. All are called in the order of the stream. */
export interface WindowPorts {
  /** What is left of a chunk goes to the sink, behind everything that the stream has brought until now. */
  ready(chunk: ReadyChunk): void;
  /** A chunk waits for the stream: asks the server for its position. */
  askPosition(): void;
  /** These chunks do not come, nor one that is being read: reading goes on behind the last that was ready. */
  discarded(chunks: readonly Chunk[], reason: DiscardReason): void;
  /**
   * Rows of the table came to lack columns in the transaction that was received: {@link ChunkWindow.lacking} has to be durable before the
   * sink has applied it.
   */
  lackingChanged(table: PublishedTable): void;
  /**
   * A transaction is handed over before its end was received, so that {@link WindowPorts.lackingChanged} may come too late. A progress that is
   * durable before it has to name its position: when the checkpoint has reached that position after a crash, and no later progress is stored,
   * tables of which a part was copied are read from their beginning.
   */
  lackingUncertain(commitLsn: Lsn): void;
}

interface PendingChunk extends Waiting {
  readonly chunk: Chunk;
}

interface OpenTransaction {
  readonly xid: number;
  readonly finalLsn: Lsn;
  /** Snapshot for which it was decided whether what it changes is kept. */
  floor: VisibleTransactions | null;
  keep: boolean;
}

/**
 * Decides which rows of a chunk the sink may be given beside the stream, and when. A row that the stream has changed in a transaction that
 * the chunk's snapshot does not see is left out: what the stream brought is newer. That decides what is right; waiting until the stream has
 * reached the position of the chunk only keeps a row from going back in time.
 *
 * There is one for each connection. It does no work of its own, and is told everything in the order in which it is received.
 */
export class ChunkWindow implements StreamWatch {
  readonly #limits: WindowLimits;
  readonly #ports: WindowPorts;
  readonly #tables = new Map<number, TrackedTable>();
  readonly #required = new RequiredTransactions();
  readonly #position = new StreamPosition();
  #pending: PendingChunk[] = [];
  /** Chunks that were ready and that the sink has not taken. */
  #untaken = 0;
  #heldBytes = 0;
  #changedBytes = 0;
  /** No snapshot that is used from now on is older, but for those of pending chunks. */
  #known: VisibleTransactions | null = null;
  #reading = false;
  /** What is being read cannot be used. */
  #readInVain = false;
  #open: OpenTransaction | null = null;
  /** What was already forgotten. */
  #forgotten: VisibleTransactions | null = null;
  /**
   * The server was asked for its position. It is asked anew when it has answered: of two answers that a chunk waits for, the second was
   * then given after the chunk was read.
   */
  #asked = false;
  /** An answer of the server came at a time at which it said nothing. */
  #askAgain = false;

  constructor(limits: WindowLimits, ports: WindowPorts) {
    this.#limits = limits;
    this.#ports = ports;
  }

  get active(): boolean {
    return this.#tables.size > 0;
  }

  /** Bytes of what is kept of rows that the stream has changed. */
  get changedBytes(): number {
    return this.#changedBytes;
  }

  /** Whether there is room for one more chunk. */
  get mayRead(): boolean {
    return (
      this.#pending.length + this.#untaken < this.#limits.pendingChunks &&
      this.#heldBytes < this.#limits.pendingBytes
    );
  }

  /**
   * Begins to keep what the stream changes of a table.
   *
   * @param notBefore - the first transaction id that had not been given out at or after this call, as {@link nextXid} tells it: what the
   * stream brought before is not known, so a chunk is used when it sees all that may be in it
   * @param lacking - rows that lack columns, as the progress has them
   */
  track(
    table: PublishedTable,
    notBefore: bigint | null,
    lacking: readonly RawRow[] = [],
  ): void {
    const rows = new LackingRows(
      this.#limits.lackingBytes,
      this.#required,
      lacking.map(rowKey),
    );
    this.untrack(table.oid);
    this.#tables.set(table.oid, new TrackedTable(table, rows, notBefore));
  }

  /** From now on a chunk of the table is used when it sees every transaction below this one. */
  usableFrom(oid: number, notBefore: bigint): void {
    const tracked = this.#tables.get(oid);
    if (tracked !== undefined) tracked.notBefore = notBefore;
  }

  /** The table is copied, or is to be tracked anew. */
  untrack(oid: number): void {
    const tracked = this.#tables.get(oid);
    if (tracked === undefined) return;
    this.#changedBytes -= tracked.changed.bytes;
    this.#tables.delete(oid);
  }

  /**
   * A chunk is about to be read: its snapshot is taken after this call. Until {@link add} or {@link notReading}, what it may not see is kept.
   */
  reading(): void {
    this.#reading = true;
    this.#readInVain = false;
  }

  /** Reading has failed. */
  notReading(): void {
    this.#reading = false;
  }

  /**
   * Takes what was read.
   *
   * @param more - chunks of the same snapshot follow
   * @returns `stale` when it has to be read once more, by a later snapshot, and better in smaller chunks
   */
  add(chunk: Chunk, more = false): 'pending' | 'stale' {
    const inVain = this.#readInVain;
    this.#reading = more;
    this.#known = chunk.visible;
    const tracked = this.#tables.get(chunk.table.oid);
    if (inVain || tracked === undefined || !this.#isUsable(chunk, tracked)) {
      this.#forget();
      return 'stale';
    }
    const pending = { chunk, readAt: chunk.readAt, told: null, reached: false };
    this.#pending.push(pending);
    this.#heldBytes += chunk.bytes;
    this.#forget();
    if (this.#open === null) this.#release();
    if (!this.#asked) this.#ask();
    return 'pending';
  }

  /** The sink has taken a chunk that was ready. */
  taken({ bytes }: Chunk): void {
    this.#untaken -= 1;
    this.#heldBytes -= bytes;
  }

  /** A snapshot that was taken while nothing was being read: what it sees is forgotten. */
  polled(visible: VisibleTransactions): void {
    if (this.#reading) return;
    this.#known = visible;
    this.#forget();
  }

  /** Rows of the table that lack columns; `read-again` when there are too many, so that the table has to be read from its beginning. */
  lacking(oid: number): readonly LackingRow[] | 'read-again' {
    const rows = this.#tables.get(oid)?.lacking;
    if (rows === undefined) return [];
    return rows.tooMany ? 'read-again' : rows.rows;
  }

  /** The table is read from its beginning. */
  readAgain(oid: number): void {
    this.#tables.get(oid)?.lacking.readAgain();
    this.#readInVain = this.#reading;
  }

  begin({ finalLsn, xid }: BeginMessage): void {
    this.#position.moved(this.#pending);
    this.#position.reach(finalLsn);
    this.#release();
    this.#open = { xid, finalLsn, floor: null, keep: true };
  }

  change(message: RowMessage): void {
    const open = this.#open;
    if (open === null) return;
    if (message.kind === 'truncate') {
      for (const { oid } of message.relations)
        this.#tables.get(oid)?.truncate(open.xid, this.#keeps(open));
      return;
    }
    const tracked = this.#tables.get(message.relation.oid);
    if (tracked === undefined) return;
    const before = tracked.changed.bytes;
    tracked.change(message, open.xid, this.#keeps(open));
    this.#changedBytes += tracked.changed.bytes - before;
    if (this.#changedBytes > this.#limits.changedBytes) this.#giveUp();
    if (tracked.lacking.tooMany) this.#discardOf(tracked);
  }

  arriving(): void {
    const open = this.#open;
    if (open !== null && this.active)
      this.#ports.lackingUncertain(open.finalLsn);
  }

  ended(): void {
    for (const { lacking, table } of this.#tables.values())
      if (lacking.takeAdded()) this.#ports.lackingChanged(table);
  }

  commit({ endLsn }: CommitMessage): void {
    this.#open = null;
    this.#position.moved(this.#pending);
    this.#position.reach(endLsn);
    this.#release();
    if (this.#askAgain) this.#ask();
  }

  keepalive(position: Lsn): void {
    this.#asked = false;
    // What it tells says nothing of the transaction that it comes in.
    if (this.#open !== null) {
      this.#askAgain = true;
      return;
    }
    this.#position.told(position, this.#pending);
    this.#release();
    this.#ask();
  }

  #ask(): void {
    this.#askAgain = false;
    if (this.#pending.length === 0) return;
    this.#asked = true;
    this.#ports.askPosition();
  }

  /** Hands over the chunks that the stream has reached, in their order. */
  #release(): void {
    for (;;) {
      const [head] = this.#pending;
      if (head === undefined || !this.#position.isReached(head)) return;
      const { chunk } = head;
      const tracked = this.#tables.get(chunk.table.oid);
      if (tracked === undefined || !tracked.tells(chunk)) {
        this.#discard(0, tracked?.keyed === false ? 'contended' : 'identity');
        return;
      }
      const ready = tracked.left(chunk);
      this.#pending.shift();
      this.#untaken += 1;
      this.#forget();
      this.#ports.ready(ready);
    }
  }

  #isUsable({ visible }: Chunk, { notBefore, lacking }: TrackedTable): boolean {
    return (
      (notBefore === null || visible.xmin >= notBefore) &&
      this.#required.seenBy(visible) &&
      !lacking.tooMany
    );
  }

  /** The oldest snapshot that may still be used; `null` when none is known. */
  get #floor(): VisibleTransactions | null {
    return this.#pending[0]?.chunk.visible ?? this.#known;
  }

  /** Whether what the transaction changes has to be kept: a chunk may be used that does not see it. */
  #keeps(open: OpenTransaction): boolean {
    const floor = this.#floor;
    if (floor !== open.floor) {
      open.floor = floor;
      open.keep = floor === null || !sees(floor, open.xid);
    }
    return open.keep && !this.#required.has(open.xid);
  }

  /** Forgets what every snapshot sees that may still be used. */
  #forget(): void {
    if (this.#known !== null) this.#required.forget(this.#known);
    const floor = this.#floor;
    if (floor === null || floor === this.#forgotten) return;
    this.#forgotten = floor;
    this.#changedBytes = 0;
    for (const { changed } of this.#tables.values()) {
      changed.forget(floor);
      this.#changedBytes += changed.bytes;
    }
  }

  /** Keeps only which transactions a chunk has to see. */
  #giveUp(): void {
    for (const { changed } of this.#tables.values())
      changed.giveUp(this.#required);
    this.#changedBytes = 0;
    this.#discard(0, 'memory');
  }

  /** Throws away chunks of the table, and all behind them. */
  #discardOf({ table }: TrackedTable): void {
    const first = this.#pending.findIndex(
      ({ chunk }) => chunk.table.oid === table.oid,
    );
    if (first >= 0) this.#discard(first, 'lacking');
  }

  #discard(first: number, reason: DiscardReason): void {
    const chunks = this.#pending.splice(first).map(({ chunk }) => chunk);
    if (chunks.length === 0) return;
    for (const { bytes } of chunks) this.#heldBytes -= bytes;
    this.#readInVain = this.#reading;
    this.#ports.discarded(chunks, reason);
  }
}
