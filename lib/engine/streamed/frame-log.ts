import { SpillError } from './spill-error.js';

/** Before a frame: its length, and the subtransaction that it belongs to. */
const HEADER = 8;
const FIRST_BLOCK = 16 * 1024;
const LARGEST_BLOCK = 256 * 1024;

/**
 * Frames of one transaction as they came, one behind the other, in blocks: as objects they would take several times as much. A block holds
 * whole frames, and one that is larger than a block has one of its own.
 */
export class FrameLog {
  #blocks: Buffer[] = [];
  #last = Buffer.alloc(0);
  /** Bytes of the last block that are in use. */
  #used = 0;
  #bytes = 0;
  #length = 0;

  /** Bytes of its frames. */
  get length(): number {
    return this.#length;
  }

  /** Bytes that are held, used or not. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Appends a frame: the tag, then the bytes from `start` to `end`. They are copied. */
  append(
    subxid: number,
    tag: number,
    bytes: Buffer,
    start: number,
    end: number,
  ): void {
    const length = 1 + end - start;
    const at = this.#reserve(HEADER + length);
    this.#last.writeUInt32BE(length, at);
    this.#last.writeUInt32BE(subxid, at + 4);
    this.#last[at + HEADER] = tag;
    bytes.copy(this.#last, at + HEADER + 1, start, end);
  }

  /** Gives its first block away; `undefined` when it has none. */
  shift(): Buffer | undefined {
    this.#seal();
    const block = this.#blocks.shift();
    if (block === undefined) return undefined;
    this.#bytes -= block.buffer.byteLength;
    this.#length -= block.length;
    return block;
  }

  /** Gives all of its blocks away, in their order. */
  take(): Buffer[] {
    this.#seal();
    const blocks = this.#blocks;
    this.#blocks = [];
    this.#bytes = 0;
    this.#length = 0;
    return blocks;
  }

  /** Lets go of the frames of these subtransactions. */
  leaveOut(subxids: ReadonlySet<number>): void {
    const blocks = this.take();
    // What was copied is let go of at once: there is little room when this is asked for.
    for (
      let block = blocks.shift();
      block !== undefined;
      block = blocks.shift()
    ) {
      const frame = new FrameCursor(block);
      while (frame.next()) {
        if (subxids.has(frame.subxid)) continue;
        const at = this.#reserve(HEADER + frame.end - frame.start);
        block.copy(this.#last, at, frame.start - HEADER, frame.end);
      }
    }
  }

  #reserve(length: number): number {
    if (this.#used + length > this.#last.length) {
      this.#seal();
      // Most transactions are not worth a large block.
      const size = Math.min(LARGEST_BLOCK, Math.max(FIRST_BLOCK, this.#bytes));
      this.#last = Buffer.allocUnsafeSlow(Math.max(size, length));
      this.#bytes += this.#last.length;
    }
    const at = this.#used;
    this.#used += length;
    this.#length += length;
    return at;
  }

  #seal(): void {
    if (this.#used > 0) this.#blocks.push(this.#last.subarray(0, this.#used));
    this.#last = Buffer.alloc(0);
    this.#used = 0;
  }
}

/** Goes through the frames of a block. */
export class FrameCursor {
  subxid = 0;
  /** Where the frame begins in the block: its tag. */
  start = 0;
  end = 0;

  constructor(readonly block: Buffer) {}

  /**
   * Goes on to the next frame; `false` behind the last one.
   *
   * @throws {SpillError} when the block does not consist of frames: it was on disk
   */
  next(): boolean {
    const { block, end } = this;
    if (end >= block.length) return false;
    if (end + HEADER > block.length) throw damaged();
    const length = block.readUInt32BE(end);
    this.subxid = block.readUInt32BE(end + 4);
    this.start = end + HEADER;
    this.end = this.start + length;
    if (length === 0 || this.end > block.length) throw damaged();
    return true;
  }
}

function damaged(): SpillError {
  return new SpillError(
    'damaged',
    'a block of a spill file has no whole frames',
  );
}
