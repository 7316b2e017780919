/**
 * Takes what one CopyData message carries: the bytes from `start` to `end`. The buffer is used again as soon as this
 * returns.
 */
export type CopyDataListener = (
  bytes: Buffer,
  start: number,
  end: number,
) => void;

const COPY_DATA = 0x64; // d
/** A letter, and a length that counts itself. */
const HEADER = 5;
const SHORTEST_LENGTH = 4;
/** PostgreSQL builds a message in one piece of memory, and no piece is larger. */
const LONGEST_LENGTH = 0x4000_0000;
/** Bytes of the longest message for which memory is kept: without it, one large row after the other leaves as much garbage. */
const MOST_KEPT = 4 * 1024 * 1024;

/**
 * Takes the CopyData messages out of what a server sends; all others go on as they came, for a parser that knows them. A
 * stream has hundreds of thousands of CopyData messages a second, so that an object for each would cost more than reading
 * its content.
 *
 * @see {@link https://www.postgresql.org/docs/current/protocol-message-formats.html | Message Formats}
 */
export class CopyDataSplitter {
  readonly #copyData: CopyDataListener;
  readonly #others: (bytes: Buffer) => void;
  /** Bytes that are still to come of a message that is not ours. */
  #passing = 0;
  /** A message of which a part has come: its header alone, or as many bytes as the header says. */
  #partial: Buffer | null = null;
  /** Bytes of it that have come. */
  #filled = 0;
  /** Where CopyData messages are put together, unless they are very long. */
  #kept = Buffer.allocUnsafe(HEADER);

  constructor(copyData: CopyDataListener, others: (bytes: Buffer) => void) {
    this.#copyData = copyData;
    this.#others = others;
  }

  /**
   * Takes the bytes that follow those before, cut anywhere.
   *
   * @throws RangeError when they are no messages, and whatever a listener throws; nothing may follow
   */
  take(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#passing > 0) at = this.#pass(chunk, at);
      else if (this.#partial !== null)
        at = this.#fill(this.#partial, chunk, at);
      else at = this.#walk(chunk, at);
    }
  }

  /** Hands over the CopyData messages that lie whole in the chunk, without a copy. */
  #walk(chunk: Buffer, from: number): number {
    let at = from;
    while (at + HEADER <= chunk.length) {
      const size = sizeOf(chunk, at);
      if (chunk[at] !== COPY_DATA) {
        this.#passing = size;
        return at;
      }
      if (at + size > chunk.length) {
        this.#partial = this.#space(size);
        return at;
      }
      this.#copyData(chunk, at + HEADER, at + size);
      at += size;
    }
    if (at < chunk.length) this.#partial = Buffer.allocUnsafe(HEADER);
    return at;
  }

  #pass(chunk: Buffer, at: number): number {
    const end = Math.min(at + this.#passing, chunk.length);
    this.#passing -= end - at;
    this.#others(chunk.subarray(at, end));
    return end;
  }

  /** Adds to a message of which a part has come. */
  #fill(partial: Buffer, chunk: Buffer, at: number): number {
    const copied = chunk.copy(partial, this.#filled, at);
    this.#filled += copied;
    if (this.#filled === partial.length) this.#end(partial);
    return at + copied;
  }

  #end(partial: Buffer): void {
    const size = sizeOf(partial, 0);
    if (partial[0] !== COPY_DATA) {
      this.#reset();
      this.#passing = size - HEADER;
      this.#others(partial);
    } else if (partial.length < size) {
      this.#partial = this.#space(size);
      partial.copy(this.#partial);
    } else {
      this.#reset();
      this.#copyData(partial, HEADER, size);
    }
  }

  #space(size: number): Buffer {
    if (size > MOST_KEPT) return Buffer.allocUnsafe(size);
    if (size > this.#kept.length)
      this.#kept = Buffer.allocUnsafeSlow(Math.min(2 * size, MOST_KEPT));
    return this.#kept.subarray(0, size);
  }

  #reset(): void {
    this.#partial = null;
    this.#filled = 0;
  }
}

/** Bytes of the message that begins here, with its header. */
function sizeOf(bytes: Buffer, at: number): number {
  const length = bytes.readUInt32BE(at + 1);
  if (length < SHORTEST_LENGTH) throw new RangeError('message too short');
  if (length > LONGEST_LENGTH && bytes[at] === COPY_DATA)
    throw new RangeError('message too long');
  return 1 + length;
}
