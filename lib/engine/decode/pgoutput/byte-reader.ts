import { MalformedMessage } from './malformed-message.js';

/**
 * Below these sizes a value is cut out of one string of the whole message: each call into Buffer costs more than the
 * value. V8 copies a part of up to 12 characters; a longer one would keep the whole message alive.
 */
const SHORT_VALUE = 12;
const SMALL_MESSAGE = 4096;

/**
 * Reads big-endian numbers and strings one after the other. Each method checks that the bytes are there.
 * One reader serves all messages of a decoder.
 */
export class ByteReader {
  #bytes: Buffer = Buffer.alloc(0);
  #offset = 0;
  /** The message as Latin-1, once it was needed. */
  #latin1: string | null = null;

  /** Begins with another message. */
  open(bytes: Buffer): void {
    this.#bytes = bytes;
    this.#offset = 0;
    this.#latin1 = null;
  }

  uint8(): number {
    return this.#bytes.readUInt8(this.#take(1));
  }

  int16(): number {
    return this.#bytes.readInt16BE(this.#take(2));
  }

  int32(): number {
    return this.#bytes.readInt32BE(this.#take(4));
  }

  uint32(): number {
    return this.#bytes.readUInt32BE(this.#take(4));
  }

  int64(): bigint {
    return this.#bytes.readBigInt64BE(this.#take(8));
  }

  uint64(): bigint {
    return this.#bytes.readBigUInt64BE(this.#take(8));
  }

  /** A length that precedes bytes: never negative. */
  length(): number {
    const length = this.int32();
    if (length < 0) throw new MalformedMessage('negative length');
    return length;
  }

  /** A string that ends with a zero byte. */
  cstring(): string {
    const start = this.#offset;
    const end = this.#bytes.indexOf(0, start);
    if (end === -1) throw new MalformedMessage('string without end');
    this.#offset = end + 1;
    return this.#bytes.toString('utf8', start, end);
  }

  /** A string of so many bytes. */
  text(length: number): string {
    const start = this.#take(length);
    const end = start + length;
    if (length <= SHORT_VALUE && this.#bytes.length <= SMALL_MESSAGE) {
      this.#latin1 ??= this.#bytes.toString('latin1');
      const text = this.#latin1.slice(start, end);
      if (isAscii(text)) return text;
    }
    return this.#bytes.toString('utf8', start, end);
  }

  /** A copy of so many bytes. */
  copy(length: number): Buffer {
    const start = this.#take(length);
    return Buffer.from(this.#bytes.subarray(start, start + length));
  }

  skip(length: number): void {
    this.#take(length);
  }

  /** Nothing may be left after a message. */
  end(): void {
    if (this.#offset !== this.#bytes.length) {
      throw new MalformedMessage('bytes left over');
    }
  }

  #take(count: number): number {
    const start = this.#offset;
    if (count > this.#bytes.length - start) {
      throw new MalformedMessage('ends early');
    }
    this.#offset = start + count;
    return start;
  }
}

function isAscii(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    if (text.charCodeAt(i) > 0x7f) return false;
  }
  return true;
}
