import { isUtf8 } from 'node:buffer';
import { MalformedMessage } from '../malformed-message.js';
import { type Literal, literal } from './literal.js';
import { jsonStringEnd, quotedTypeEnd, unescaped } from './string-literal.js';

/** V8 keeps all of a text alive for as long as any long cut of it, so of a longer document the strings are copies. */
const CUT_UP_TO = 4096;

/** No name of a type is longer, with its schema, its quotes and its modifier. */
const LONGEST_TYPE_NAME = 1024;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const FIRST_PRINTABLE = 0x20;
const FIRST_BEYOND_ASCII = 0x80;

/** Above the bits of any byte. */
const ESCAPED = 0x100;

const MINUS = literal('-');

/** Stands where bytes are no UTF-8, or where it was written. */
const REPLACEMENT = '\ufffd';

/**
 * Reads a JSON document from its beginning to its end. The plugin writes members in one order and without spaces, so that it is known what
 * comes next; whatever differs is malformed. Nothing nests deeper than the plugin nests it.
 */
export class DocumentReader {
  #bytes: Buffer = Buffer.alloc(0);
  #view = viewOf(this.#bytes);
  #start = 0;
  #at = 0;
  #end = 0;
  /** The document as Latin-1, once a string was cut out of it. */
  #text: string | null = null;

  /** Begins with another document: the bytes from `start` to `end`. */
  open(bytes: Buffer, start: number, end: number): void {
    if (bytes !== this.#bytes) {
      this.#bytes = bytes;
      this.#view = viewOf(bytes);
    }
    this.#start = start;
    this.#at = start;
    this.#end = end;
    this.#text = null;
  }

  get at(): number {
    return this.#at;
  }

  /** A copy of what was read since then. */
  since(start: number): Buffer {
    return Buffer.from(this.#bytes.subarray(start, this.#at));
  }

  /** Reads these bytes where they come next, and says whether they do. */
  takes(expected: Literal): boolean {
    const at = this.#at;
    if (expected.length > this.#end - at || !expected.isAt(at, this.#view))
      return false;
    this.#at = at + expected.length;
    return true;
  }

  /** @param what - the bytes as fault texts name them */
  expect(expected: Literal, what: string): void {
    if (!this.takes(expected)) throw new MalformedMessage(`${what} is missing`);
  }

  /** Whether a string comes next. */
  get isAtString(): boolean {
    return this.#at < this.#end && this.#view.getUint8(this.#at) === QUOTE;
  }

  string(): string {
    const start = this.#at;
    const bits = this.#passString();
    const isAscii = (bits & FIRST_BEYOND_ASCII) === 0;
    if (bits >= ESCAPED)
      return unescaped(
        isAscii ? this.#cut(start, this.#at) : this.#decode(start, this.#at),
      );
    return isAscii
      ? this.#cut(start + 1, this.#at - 1)
      : this.#decode(start + 1, this.#at - 1);
  }

  /** A string that is kept for longer than the document. */
  name(): string {
    const start = this.#at;
    this.#passString();
    return unescaped(this.#decode(start, this.#at));
  }

  /** The bytes of a string, which may be no UTF-8. */
  bytes(): Buffer {
    const start = this.#at;
    this.#passString();
    const text = this.#bytes.toString('latin1', start, this.#at);
    return Buffer.from(unescaped(text), 'latin1');
  }

  skipString(): void {
    this.#passString();
  }

  /** A whole number of 32 bits, signed or not. */
  integer(): number {
    const isNegative = this.takes(MINUS);
    const start = this.#at;
    let value = 0;
    while (this.#at < this.#end) {
      const digit = this.#view.getUint8(this.#at) - 0x30;
      if (digit < 0 || digit > 9) break;
      value = value * 10 + digit;
      this.#at++;
    }
    if (this.#at === start || value >= 2 ** (isNegative ? 31 : 32))
      throw new MalformedMessage('no number of 32 bits');
    return isNegative ? -value : value;
  }

  /**
   * The name of a type. One that begins with a quote and is no array the plugin writes as SQL does, which is no JSON or other JSON.
   *
   * @param next - what comes after it
   */
  typeName(next: string): string {
    const start = this.#at;
    const end = Math.min(this.#end, start + LONGEST_TYPE_NAME);
    const rest = this.#bytes.toString('latin1', start, end);
    const jsonEnd = jsonStringEnd(rest);
    const isJson = jsonEnd !== -1 && rest.startsWith(next, jsonEnd);
    const length = isJson ? jsonEnd : quotedTypeEnd(rest, next);
    if (length === -1) throw new MalformedMessage('type without a name');
    this.#at = start + length;
    const text = this.#decode(start, this.#at);
    return isJson ? unescaped(text) : text;
  }

  /** Nothing may be left after a document. */
  end(): void {
    if (this.#at !== this.#end) throw new MalformedMessage('bytes left over');
  }

  /** @returns all bits of its bytes, and {@link ESCAPED} when it has escapes */
  #passString(): number {
    if (!this.isAtString) throw new MalformedMessage('no string');
    const view = this.#view;
    const end = this.#end;
    let bits = 0;
    for (let at = this.#at + 1; at < end; at++) {
      const byte = view.getUint8(at);
      if (byte === QUOTE) {
        this.#at = at + 1;
        return bits;
      }
      if (byte < FIRST_PRINTABLE)
        throw new MalformedMessage('control character in a string');
      if (byte === BACKSLASH) {
        bits |= ESCAPED;
        at++;
      }
      bits |= byte;
    }
    throw new MalformedMessage('string without end');
  }

  /** Text of ASCII alone. */
  #cut(start: number, end: number): string {
    if (this.#end - this.#start > CUT_UP_TO)
      return this.#bytes.toString('latin1', start, end);
    this.#text ??= this.#bytes.toString('latin1', this.#start, this.#end);
    return this.#text.slice(start - this.#start, end - this.#start);
  }

  #decode(start: number, end: number): string {
    const text = this.#bytes.toString('utf8', start, end);
    if (text.includes(REPLACEMENT) && !isUtf8(this.#bytes.subarray(start, end)))
      throw new MalformedMessage('string that is not UTF-8');
    return text;
  }
}

function viewOf(bytes: Buffer): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}
