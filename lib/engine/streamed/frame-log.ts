import { SpillError } from './spill-error.js';

/** Before a frame: its length, and the subtransaction that it belongs to. */
const HEADER = 8;
const FIRST_BLOCK = 16 * 1024;
const LARGEST_BLOCK = 256 * 1024;
const NO_FRAMES = Buffer.alloc(0);

/**
 * Frames of one transaction as they came, one behind the other, in blocks: as objects they would take several times as much. A block holds
 * whole frames, and one that is larger than a block has one of its own.
 */
export class FrameLog {
  #blocks: Buffer[] = [];
  #last = NO_FRAMES;
  /** Bytes of the last block that are in use. */
  #used = 0;
  #bytes = 0;
  #length = 0;
  /** How often blocks were given away. */
  #given = 0;

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
    this.#given += 1;
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
    this.#given += 1;
    this.#bytes = 0;
    this.#length = 0;
    return blocks;
  }

  /**
   * Lets go of the frames of these subtransactions, block by block: it may be gone on with at any time.
   *
   * @returns whether it is through; not when blocks were given away meanwhile
   */
  *leaveOut(subxids: ReadonlySet<number>): Generator<void, boolean, void> {
    this.#seal();
    const blocks = this.#blocks;
    const given = this.#given;
    for (let at = 0; at < blocks.length && this.#given === given; yield) {
      const block = blocks[at] ?? NO_FRAMES;
      const left = without(block, subxids);
      this.#bytes += left.buffer.byteLength - block.buffer.byteLength;
      this.#length += left.length - block.length;
      if (left.length === 0) blocks.splice(at, 1);
      else blocks[at++] = left;
    }
    return this.#given === given;
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
    this.#last = NO_FRAMES;
    this.#used = 0;
  }
}

/** The frames of a block without those of these subtransactions. */
function without(block: Buffer, subxids: ReadonlySet<number>): Buffer {
  const frame = new FrameCursor(block);
  let length = block.length;
  while (frame.next())
    if (subxids.has(frame.subxid)) length -= HEADER + frame.end - frame.start;
  if (length === block.length) return block;
  const left = Buffer.allocUnsafeSlow(length);
  const kept = new FrameCursor(block);
  let at = 0;
  while (kept.next()) {
    if (subxids.has(kept.subxid)) continue;
    at += block.copy(left, at, kept.start - HEADER, kept.end);
  }
  return left;
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
