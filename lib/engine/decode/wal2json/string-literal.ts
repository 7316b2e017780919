import { MalformedMessage } from '../malformed-message.js';

const BACKSLASH = 0x5c;

/** The plugin escapes as `\u` control characters alone. */
const OTHER_CODE = /\\u(?!00[01])/;

/** Where the JSON string that begins at `start` has ended, or -1. */
export function jsonStringEnd(text: string, start: number): number {
  if (!text.startsWith('"', start)) return -1;
  for (let from = start + 1; ;) {
    const quote = text.indexOf('"', from);
    if (quote === -1) return -1;
    let backslashes = 0;
    while (text.charCodeAt(quote - 1 - backslashes) === BACKSLASH)
      backslashes++;
    if (backslashes % 2 === 0) return quote + 1;
    from = quote + 1;
  }
}

/** The string that a JSON literal stands for: a copy, of which nothing else is kept alive. */
export function unescaped(literal: string): string {
  if (
    literal.includes('\\u') &&
    OTHER_CODE.test(literal.replaceAll('\\\\', ''))
  )
    throw new MalformedMessage('escape that PostgreSQL does not write');
  const value: unknown = JSON.parse(literal);
  if (typeof value !== 'string') throw new MalformedMessage('no string');
  return value;
}

/**
 * Where the name of a type has ended that SQL writes in quotes, such as `"S"."a""b"(3)`, or -1.
 *
 * @param next - what comes after it
 */
export function quotedTypeEnd(
  text: string,
  start: number,
  next: string,
): number {
  let end = quotedNameEnd(text, start);
  if (end !== -1 && text.startsWith('."', end))
    end = quotedNameEnd(text, end + 1);
  if (end === -1) return -1;
  // A name without quotes, or a modifier.
  const rest = text.indexOf(next, end);
  return rest === -1 || text.slice(end, rest).includes('"') ? -1 : rest;
}

/** Where a name in quotes has ended, or -1. A quote in it is written twice. */
function quotedNameEnd(text: string, start: number): number {
  if (!text.startsWith('"', start)) return -1;
  let quote = text.indexOf('"', start + 1);
  while (quote !== -1 && text.startsWith('"', quote + 1))
    quote = text.indexOf('"', quote + 2);
  return quote === -1 ? -1 : quote + 1;
}
