import type { ValueParser } from './value-parser.js';

/** PostgreSQL's own limit of dimensions (`MAXDIM`). */
const MAX_DEPTH = 6;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN = 0x7b;
const CLOSE = 0x7d;

/**
 * Reads what PostgreSQL prints for an array: nested arrays for dimensions, `null` for NULL elements, and what
 * `element` makes of every other element.
 *
 * Returns `null` for anything else, so that the caller can deliver the text: explicit bounds (`[2:4]={…}`), which an
 * array in JavaScript has no place for, sub-arrays of different sizes, and text that is no array at all. It reads
 * what the server writes and not all that the server accepts: an unquoted element has no blanks and no backslashes.
 *
 * The time is linear in the length of the text, and depth costs no call stack.
 *
 * @param delimiter - one character; `;` for arrays of `box`, else `,`
 * @see {@link https://www.postgresql.org/docs/current/arrays.html#ARRAYS-IO | Array Input and Output Syntax}
 */
export function parseArrayLiteral(
  text: string,
  element: ValueParser,
  delimiter: string,
): unknown[] | null {
  const end = text.length - 1;
  if (text.charCodeAt(0) !== OPEN || text.charCodeAt(end) !== CLOSE)
    return null;
  if (end === 1) return [];

  const separator = delimiter.charCodeAt(0);
  const root: unknown[] = [];
  const parents: unknown[][] = [];
  /** Length of the arrays at each depth, known once the first of them is closed. */
  const sizes: number[] = [];
  let leafDepth = -1;
  let current = root;
  let at = 1;

  for (;;) {
    if (text.charCodeAt(at) === OPEN) {
      if (parents.length === MAX_DEPTH - 1) return null;
      const child: unknown[] = [];
      current.push(child);
      parents.push(current);
      current = child;
      at += 1;
      continue;
    }

    if (leafDepth === -1) leafDepth = parents.length;
    else if (leafDepth !== parents.length) return null;

    if (text.charCodeAt(at) === QUOTE) {
      const close = closingQuote(text, at + 1);
      if (close === -1) return null;
      current.push(element(unescape(text.slice(at + 1, close))));
      at = close + 1;
    } else {
      const stop = endOfUnquoted(text, at, separator);
      if (stop === at) return null;
      const raw = text.slice(at, stop);
      current.push(raw === 'NULL' ? null : element(raw));
      at = stop;
    }

    while (text.charCodeAt(at) === CLOSE) {
      const depth = parents.length;
      const size = (sizes[depth] ??= current.length);
      if (size !== current.length) return null;
      at += 1;
      const parent = parents.pop();
      if (parent === undefined) return at > end ? root : null;
      current = parent;
    }

    if (text.charCodeAt(at) !== separator) return null;
    at += 1;
  }
}

/** Index of the quote that ends the element which begins at `start`, or -1. */
function closingQuote(text: string, start: number): number {
  for (let at = start; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at;
    if (code === BACKSLASH) at += 1;
  }
  return -1;
}

/** The element without the backslashes that protect its characters. */
function unescape(raw: string): string {
  let backslash = raw.indexOf('\\');
  if (backslash === -1) return raw;
  let result = '';
  let from = 0;
  while (backslash !== -1) {
    result += raw.slice(from, backslash);
    from = backslash + 1;
    backslash = raw.indexOf('\\', from + 1);
  }
  return result + raw.slice(from);
}

/** Index of the delimiter or brace that ends an unquoted element; `start` when the element is none. */
function endOfUnquoted(text: string, start: number, separator: number): number {
  let at = start;
  for (; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === separator || code === CLOSE) return at;
    if (code === OPEN || code === QUOTE || code === BACKSLASH) return start;
    if (code === 0x20 || (code >= 0x09 && code <= 0x0d)) return start;
  }
  return start;
}
