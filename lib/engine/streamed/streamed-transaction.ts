import { FrameLog } from './frame-log.js';
import type { SpillFile } from './spill-file.js';

/** What is done with the file of a transaction. */
export type TransactionFile = Pick<SpillFile, 'write' | 'blocks' | 'remove'>;

const MESSAGE = 0x4d; // M
const ROWS = new Set(Buffer.from('IUDT'));
const NONE: ReadonlySet<number> = new Set();
/** With more of them it takes less to have a transaction sent once more than to remember them. */
const MOST_SUBTRANSACTIONS = 100_000;

/** What has arrived of a transaction that may still be running. */
export class StreamedTransaction {
  readonly #log = new FrameLog();
  #aborted = new Set<number>();
  /** Aborted too: their frames are being left out. */
  #leftOut = NONE;
  /** Aborted since frames were left out last. */
  #toLeaveOut = false;
  #file: TransactionFile | null = null;
  /** The one that the last frame came of, or the transaction itself. */
  #current: number;
  readonly #subtransactions = new Set<number>();
  /** The subtransaction that began last, of those that frames came of. */
  #newest: number;
  /** None that began later has frames on disk; `null` when nothing is on disk. */
  #onDiskThrough: number | null = null;
  #bytesOnDisk = 0;
  /** Messages came since the last row of no savepoint: one that is open by then may be theirs. */
  #messagesOpen = false;
  #hasMessages = false;
  #isUnclear = false;
  /** What the server said was rolled back. */
  readonly #rolledBack = new Set<number>();
  /** Tables by OID that the server has announced in it, and counts as announced when it commits; with the number of the announcement. */
  readonly announced = new Map<number, number>();

  constructor(readonly xid: number) {
    this.#newest = xid;
    this.#current = xid;
  }

  /** Bytes in memory. */
  get bytes(): number {
    return this.#log.bytes;
  }

  /** Bytes that are written when it is spilled. */
  get length(): number {
    return this.#log.length;
  }

  /** Bytes that were written to disk, or are being written. */
  get bytesOnDisk(): number {
    return this.#bytesOnDisk;
  }

  /** Those that something came of, and of which the server has not said that they were rolled back. */
  get subtransactions(): ReadonlySet<number> {
    return this.#subtransactions;
  }

  /**
   * Nothing tells what was rolled back: messages may be, which the server sends as if they had no savepoint, or there are too many
   * subtransactions to ask about.
   */
  get isUnclear(): boolean {
    return this.#isUnclear;
  }

  /** The server does not say to which of its subtransactions they belong, and may not say that one was rolled back. */
  get hasMessages(): boolean {
    return this.#hasMessages;
  }

  /** Subtransactions of which the server has said that they were rolled back. There may be more. */
  get rolledBack(): ReadonlySet<number> {
    return this.#rolledBack;
  }

  get file(): TransactionFile | null {
    return this.#file;
  }

  /** Appends a frame: the tag, then the bytes from `start` to `end`. */
  append(
    subxid: number,
    tag: number,
    bytes: Buffer,
    start: number,
    end: number,
  ): void {
    if (subxid !== this.#current) this.#enter(subxid);
    if (subxid === this.xid) {
      if (tag === MESSAGE) this.#hasMessages = this.#messagesOpen = true;
      else if (ROWS.has(tag)) this.#messagesOpen = false;
    }
    this.#log.append(subxid, tag, bytes, start, end);
  }

  /** A subtransaction was rolled back. The server announces tables anew after that. */
  abort(subxid: number): void {
    this.announced.clear();
    this.#isUnclear ||= this.#messagesOpen;
    this.#subtransactions.delete(subxid);
    if (this.#rolledBack.size < MOST_SUBTRANSACTIONS)
      this.#rolledBack.add(subxid);
    // One that changed nothing but what is not published: nothing came of it, and nothing will.
    if (isLater(subxid, this.#newest)) return;
    this.#aborted.add(subxid);
    this.#toLeaveOut = true;
  }

  #enter(subxid: number): void {
    this.#current = subxid;
    if (subxid === this.xid) return;
    if (isLater(subxid, this.#newest)) this.#newest = subxid;
    if (this.#isUnclear) return;
    this.#subtransactions.add(subxid);
    this.#isUnclear = this.#subtransactions.size > MOST_SUBTRANSACTIONS;
  }

  /** Something of what is in memory may have been rolled back. */
  get hasToLeaveOut(): boolean {
    return this.#toLeaveOut;
  }

  /** Lets go of what was rolled back, as far as it is in memory; see {@link FrameLog.leaveOut}. */
  *leaveOutAborted(): Generator<void, void, void> {
    const leftOut = this.#aborted;
    this.#leftOut = leftOut;
    this.#aborted = new Set();
    this.#toLeaveOut = false;
    if (!(yield* this.#log.leaveOut(leftOut))) return;
    const onDisk = this.#onDiskThrough;
    for (const subxid of leftOut)
      if (onDisk !== null && !isLater(subxid, onDisk))
        this.#aborted.add(subxid);
    this.#leftOut = NONE;
  }

  /** Writes what is in memory to a file, always the same one. It is no longer counted here, and held until this resolves. */
  spill(file: TransactionFile): Promise<void> {
    this.#file = file;
    this.#onDiskThrough = this.#newest;
    this.#bytesOnDisk += this.length;
    return file.write(this.#log.take());
  }

  /** Whether the frame was rolled back. */
  isAborted(subxid: number): boolean {
    return this.#aborted.has(subxid) || this.#leftOut.has(subxid);
  }

  /** Gives what has arrived, in order, block by block, and lets go of each. Once. */
  async *blocks(): AsyncIterableIterator<Buffer> {
    if (this.#file !== null) yield* this.#file.blocks();
    for (;;) {
      const block = this.#log.shift();
      if (block === undefined) return;
      yield block;
    }
  }
}

/** Whether a transaction id was given out later than another one; they wrap around. */
function isLater(xid: number, other: number): boolean {
  return ((xid - other) | 0) > 0;
}
