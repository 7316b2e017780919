import type { Lsn } from '../../model/lsn.js';
import type {
  BeginMessage,
  CommitMessage,
} from '../../model/replication-message.js';
import type { PublishedTable } from '../../server/published-table.js';
import type { RawRow } from '../raw-row.js';
import type { Chunk } from './chunk.js';
import { type LackingRow, LackingRows } from './lacking-rows.js';
import { PendingChunks } from './pending-chunks.js';
import { RequiredTransactions } from './required-transactions.js';
import { rowKey } from './row-identity.js';
import type { RowMessage, StreamWatch } from './stream-watch.js';
import { TrackedTable } from './tracked-table.js';
import { sees, type VisibleTransactions } from './visibility.js';
import type {
  DiscardReason,
  WindowLimits,
  WindowPorts,
} from './window-ports.js';

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
  readonly #appliedThrough: Lsn;
  readonly #uncertain: Lsn | null;
  readonly #tables = new Map<number, TrackedTable>();
  readonly #required = new RequiredTransactions();
  readonly #pending: PendingChunks;
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
   * @param appliedThrough - what commits up to here was applied before, and comes again without being handed over: tables are tracked from
   * behind it
   */
  constructor(
    limits: WindowLimits,
    ports: WindowPorts,
    appliedThrough: Lsn,
    uncertain: Lsn | null = null,
  ) {
    this.#limits = limits;
    this.#ports = ports;
    this.#appliedThrough = appliedThrough;
    this.#uncertain = uncertain;
    this.#pending = new PendingChunks(() => ports.askPosition());
  }

  get active(): boolean {
    return this.#tables.size > 0;
  }

  /** Bytes of what is kept of rows that the stream has changed. */
  get changedBytes(): number {
    return this.#changedBytes;
  }

  /** Whether a chunk waits for {@link flushed}. */
  get awaitsFlush(): boolean {
    return this.#pending.awaitFlush;
  }

  /** Whether there is room for one more chunk. */
  get mayRead(): boolean {
    return (
      this.#pending.count < this.#limits.pendingChunks &&
      this.#pending.bytes < this.#limits.pendingBytes
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
    this.#pending.push(chunk);
    this.#forget();
    if (this.#open === null) this.#release();
    this.#pending.ask();
    return 'pending';
  }

  /** The sink has taken a chunk that was ready. */
  taken(chunk: Chunk): void {
    this.#pending.taken(chunk);
  }

  /** A snapshot that was taken while nothing was being read: what it sees is forgotten. */
  polled(visible: VisibleTransactions): void {
    if (this.#reading) return;
    this.#known = visible;
    this.#forget();
  }

  /** The log of the source is flushed up to here. */
  flushed(position: Lsn): void {
    this.#pending.flushed(position);
    this.#pending.ask();
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
    this.#pending.reach(finalLsn);
    this.#release();
    this.#open = { xid, finalLsn, floor: null, keep: true };
  }

  change(message: RowMessage): void {
    const open = this.#open;
    if (open === null || this.#isKnown(open)) return;
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
    if (tracked.lacking.tooMany) this.#discard('lacking', tracked.table.oid);
  }

  /** What was applied before was told before, but for the transaction at which the progress was left in doubt. */
  #isKnown({ finalLsn }: OpenTransaction): boolean {
    return finalLsn <= this.#appliedThrough && finalLsn !== this.#uncertain;
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
    this.#pending.reach(endLsn);
    this.#release();
    this.#pending.askAgain();
  }

  keepalive(position: Lsn): void {
    if (this.#open !== null) {
      this.#pending.toldWithin();
      return;
    }
    this.#pending.told(position);
    this.#release();
    this.#pending.ask();
  }

  /** Hands over the chunks that the stream has reached, in their order. */
  #release(): void {
    for (;;) {
      const chunk = this.#pending.ready;
      if (chunk === null) return;
      const tracked = this.#tables.get(chunk.table.oid);
      if (tracked === undefined || !tracked.tells(chunk)) {
        this.#discard(tracked?.keyed === false ? 'contended' : 'identity');
        return;
      }
      const ready = tracked.left(chunk);
      this.#pending.shift();
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
    return this.#pending.first?.visible ?? this.#known;
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
    this.#discard('memory');
  }

  /** Throws away all chunks that wait, or those from the first of a table on. */
  #discard(reason: DiscardReason, oid?: number): void {
    const chunks = this.#pending.drop(oid);
    if (chunks.length === 0) return;
    this.#readInVain = this.#reading;
    this.#ports.discarded(chunks, reason);
  }
}
