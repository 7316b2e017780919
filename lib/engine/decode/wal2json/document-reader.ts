import { MalformedMessage } from '../malformed-message.js';
import { jsonStringEnd, quotedTypeEnd, unescaped } from './string-literal.js';

/** V8 keeps all of a text alive for as long as any long cut of it, so of a longer document the strings are copies. */
const CUT_UP_TO = 4096;

// oxlint-disable-next-line no-control-regex -- JSON has them only as escapes
const CONTROL_CHARACTER = /[\u0000-\u001f]/;

/**
 * Reads a JSON document from its beginning to its end. The plugin writes members in one order and without spaces, so that it is known what
 * comes next; whatever differs is malformed. Nothing nests deeper than the plugin nests it.
 */
export class DocumentReader {
  #text = '';
  #at = 0;
  /** Where the next backslash is, seen from where it was looked for last. */
  #backslash = -1;
  #copies = false;

  /** Begins with another document. */
  open(text: string): void {
    if (CONTROL_CHARACTER.test(text))
      throw new MalformedMessage('control character');
    this.#text = text;
    this.#at = 0;
    this.#backslash = -1;
    this.#copies = text.length > CUT_UP_TO;
  }

  /** Characters that were read. */
  get at(): number {
    return this.#at;
  }

  /** What was read since then. */
  since(start: number): string {
    return this.#text.slice(start, this.#at);
  }

  /** Reads this text where it comes next, and says whether it does. */
  takes(text: string): boolean {
    if (!this.#text.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  /** @param what - the text as fault texts name it */
  expect(text: string, what: string): void {
    if (!this.takes(text)) throw new MalformedMessage(`${what} is missing`);
  }

  string(): string {
    const start = this.#at;
    return this.#passString() && !this.#copies
      ? this.#text.slice(start + 1, this.#at - 1)
      : unescaped(this.since(start));
  }

  /** Whether a string comes next. */
  get isAtString(): boolean {
    return this.#text.startsWith('"', this.#at);
  }

  /** A string that is kept for longer than the document. */
  name(): string {
    const start = this.#at;
    this.#passString();
    return unescaped(this.since(start));
  }

  skipString(): void {
    this.#passString();
  }

  /** A whole number of 32 bits, signed or not. */
  integer(): number {
    const start = this.#at;
    this.takes('-');
    const digits = this.#at;
    while (isDigit(this.#text.charCodeAt(this.#at))) this.#at++;
    const value = Number(this.since(start));
    if (this.#at === digits || value >= 2 ** 32 || value < -(2 ** 31))
      throw new MalformedMessage('no number of 32 bits');
    return value;
  }

  /**
   * The name of a type. One that begins with a quote and is no array the plugin writes as SQL does, which is no JSON or other JSON.
   *
   * @param next - what comes after it
   */
  typeName(next: string): string {
    const start = this.#at;
    const end = jsonStringEnd(this.#text, start);
    const isJson = end !== -1 && this.#text.startsWith(next, end);
    this.#at = isJson ? end : quotedTypeEnd(this.#text, start, next);
    if (this.#at === -1) throw new MalformedMessage('type without a name');
    const literal = this.since(start);
    return isJson ? unescaped(literal) : literal;
  }

  /** Nothing may be left after a document. */
  end(): void {
    if (this.#at !== this.#text.length)
      throw new MalformedMessage('text left over');
  }

  /** @returns whether the string has no escapes */
  #passString(): boolean {
    const start = this.#at;
    let end = jsonQuoteAfter(this.#text, start);
    if (this.#backslash < start) {
      const next = this.#text.indexOf('\\', start);
      this.#backslash = next === -1 ? Infinity : next;
    }
    const isPlain = end < this.#backslash;
    if (!isPlain) end = jsonStringEnd(this.#text, start) - 1;
    if (end < 0) throw new MalformedMessage('no string');
    this.#at = end + 1;
    return isPlain;
  }
}

/** The first quote after the one at `start`, or -1. */
function jsonQuoteAfter(text: string, start: number): number {
  return text.startsWith('"', start) ? text.indexOf('"', start + 1) : -1;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}
