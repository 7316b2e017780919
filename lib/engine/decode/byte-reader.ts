import { MalformedMessage } from './malformed-message.js';

/**
 * A call into Buffer costs more than a value of up to this many bytes, so these are cut out of a longer piece of the
 * message.
 */
const SHORT_VALUE = 64;
/** Bytes of such a piece. V8 keeps all of it alive for as long as any cut of more than 12 characters. */
const PIECE = 256;

/**
 * Reads big-endian numbers and strings one after the other. Each method checks that the bytes are there.
 * One reader serves all messages of a decoder.
 */
export class ByteReader {
  #bytes: Buffer = Buffer.alloc(0);
  /** Of the same bytes: V8 reads its numbers with one instruction, those of a Buffer byte by byte. */
  #view = viewOf(this.#bytes);
  #offset = 0;
  #end = 0;
  /** A piece of the message as Latin-1, and where it lies. */
  #piece = '';
  #pieceStart = 0;
  #pieceEnd = 0;

  /** Begins with another message: the bytes from `start` to `end`. */
  open(bytes: Buffer, start: number, end: number): void {
    // Many messages lie in one buffer.
    if (bytes !== this.#bytes) {
      this.#bytes = bytes;
      this.#view = viewOf(bytes);
    }
    this.#offset = start;
    this.#end = end;
    this.#pieceEnd = 0;
  }

  uint8(): number {
    return this.#view.getUint8(this.#take(1));
  }

  int16(): number {
    return this.#view.getInt16(this.#take(2));
  }

  int32(): number {
    return this.#view.getInt32(this.#take(4));
  }

  uint32(): number {
    return this.#view.getUint32(this.#take(4));
  }

  int64(): bigint {
    return this.#view.getBigInt64(this.#take(8));
  }

  uint64(): bigint {
    return this.#view.getBigUint64(this.#take(8));
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
    if (end === -1 || end >= this.#end)
      throw new MalformedMessage('string without end');
    this.#offset = end + 1;
    return this.#bytes.toString('utf8', start, end);
  }

  /** A string of so many bytes. */
  text(length: number): string {
    const start = this.#take(length);
    const end = start + length;
    if (length > SHORT_VALUE || !isAscii(this.#view, start, end))
      return this.#bytes.toString('utf8', start, end);
    if (end > this.#pieceEnd) this.#openPiece(start);
    return this.#piece.slice(start - this.#pieceStart, end - this.#pieceStart);
  }

  /** A copy of so many bytes. */
  copy(length: number): Buffer {
    const start = this.#take(length);
    return Buffer.from(this.#bytes.subarray(start, start + length));
  }

  skip(length: number): void {
    this.#take(length);
  }

  /** Bytes of the message that were not read. */
  get left(): number {
    return this.#end - this.#offset;
  }

  /** Nothing may be left after a message. */
  end(): void {
    if (this.#offset !== this.#end) {
      throw new MalformedMessage('bytes left over');
    }
  }

  #take(count: number): number {
    const start = this.#offset;
    if (count > this.#end - start) {
      throw new MalformedMessage('ends early');
    }
    this.#offset = start + count;
    return start;
  }

  #openPiece(start: number): void {
    this.#pieceStart = start;
    this.#pieceEnd = Math.min(start + PIECE, this.#end);
    this.#piece = this.#bytes.toString('latin1', start, this.#pieceEnd);
  }
}

function viewOf(bytes: Buffer): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}

function isAscii(view: DataView, start: number, end: number): boolean {
  let at = start;
  for (; at + 4 <= end; at += 4) {
    if ((view.getUint32(at) & 0x8080_8080) !== 0) return false;
  }
  for (; at < end; at++) {
    if (view.getUint8(at) > 0x7f) return false;
  }
  return true;
}
