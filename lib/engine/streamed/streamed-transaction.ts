import { FrameLog } from './frame-log.js';
import type { SpillFile } from './spill-file.js';

/** What is done with the file of a transaction. */
export type TransactionFile = Pick<SpillFile, 'write' | 'blocks' | 'remove'>;

const MESSAGE = 0x4d; // M

/** What has arrived of a transaction that may still be running. */
export class StreamedTransaction {
  readonly #log = new FrameLog();
  #aborted = new Set<number>();
  /** Aborted since frames were left out last. */
  #toLeaveOut = false;
  #file: TransactionFile | null = null;
  /** The subtransaction that began last, of those with frames. */
  #newest: number;
  /** None that began later has frames on disk; `null` when nothing is on disk. */
  #onDiskThrough: number | null = null;
  #bytesOnDisk = 0;
  /** Behind the last message, the row of the subtransaction that began first; `null` when none has come. */
  #oldestSinceMessage: number | null = null;
  #hasMessages = false;
  #unclear = false;
  /** Tables by OID that the server has announced in it, and counts as announced when it commits; with the number of the announcement. */
  readonly announced = new Map<number, number>();

  constructor(readonly xid: number) {
    this.#newest = xid;
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

  /**
   * A message may have been rolled back: with rows the server names their subtransaction, with messages only the transaction.
   *
   * @see {@link https://www.postgresql.org/docs/current/protocol-logicalrep-message-formats.html | Message, Xid of the transaction}
   */
  get unclear(): boolean {
    return this.#unclear;
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
    if (isLater(subxid, this.#newest)) this.#newest = subxid;
    if (tag === MESSAGE) {
      this.#hasMessages = true;
      this.#oldestSinceMessage = null;
    } else if (
      this.#oldestSinceMessage === null ||
      isLater(this.#oldestSinceMessage, subxid)
    )
      this.#oldestSinceMessage = subxid;
    this.#log.append(subxid, tag, bytes, start, end);
  }

  /** A subtransaction was rolled back. The server announces tables anew after that. */
  abort(subxid: number): void {
    this.announced.clear();
    if (this.#hasMessages && !this.#wentOnWithout(subxid)) this.#unclear = true;
    // Of this one nothing has come: it changed what is not published.
    if (isLater(subxid, this.#newest)) return;
    this.#aborted.add(subxid);
    this.#toLeaveOut = true;
  }

  /** Whether a row has come since the last message that belongs to what this subtransaction is inside of: so the message does too. */
  #wentOnWithout(subxid: number): boolean {
    const oldest = this.#oldestSinceMessage;
    return oldest !== null && isLater(subxid, oldest);
  }

  /** Lets go of what was rolled back, as far as it is in memory. */
  leaveOutAborted(): void {
    if (!this.#toLeaveOut) return;
    this.#log.leaveOut(this.#aborted);
    this.#toLeaveOut = false;
    const onDisk = this.#onDiskThrough;
    this.#aborted =
      onDisk === null
        ? new Set()
        : new Set([...this.#aborted].filter((xid) => !isLater(xid, onDisk)));
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
    return this.#aborted.has(subxid);
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
