import { asText } from './value-parser.js';
import type { ValueParser } from './value-parser.js';

/*
 * Each parser reads one text form, the one that the pinned session settings produce, and gives back the text itself
 * when it sees anything else: a value in an unexpected form stays a correct text and never becomes a wrong value.
 */

const PLUS = 0x2b;
const MINUS = 0x2d;
const POINT = 0x2e;
const LOWER_E = 0x65;

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

function parseBool(text: string): boolean | string {
  if (text === 't') return true;
  if (text === 'f') return false;
  return text;
}

/** int2, int4 and oid: ten digits at most, so always exact. */
function parseInteger(text: string): number | string {
  const negative = text.charCodeAt(0) === MINUS;
  const first = negative ? 1 : 0;
  if (text.length === first || text.length > first + 10) return text;
  let value = 0;
  for (let at = first; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (!isDigit(code)) return text;
    value = value * 10 + (code - 0x30);
  }
  return negative ? 0 - value : value;
}

/** float4 and float8, which the server prints with as many digits as it takes to read the same number back. */
function parseFloat8(text: string): number | string {
  if (text === 'NaN') return Number.NaN;
  if (text === 'Infinity') return Number.POSITIVE_INFINITY;
  if (text === '-Infinity') return Number.NEGATIVE_INFINITY;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    const expected =
      isDigit(code) ||
      code === MINUS ||
      code === POINT ||
      code === LOWER_E ||
      code === PLUS;
    if (!expected) return text;
  }
  if (text === '') return text;
  const value = Number(text);
  return Number.isFinite(value) ? value : text;
}

/** `\x` and pairs of hexadecimal digits. */
function parseBytea(text: string): Buffer | string {
  if (!text.startsWith('\\x')) return text;
  // Node reads only the low byte of each character, so that 'š' would pass for 'a'.
  if (Buffer.byteLength(text) !== text.length) return text;
  const bytes = Buffer.from(text.slice(2), 'hex');
  // Node stops at the first pair that is not hexadecimal.
  return bytes.length * 2 === text.length - 2 ? bytes : text;
}

/** Infinity, years of five digits and years BC are no such text. */
const TIMESTAMP = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?$/;
/** Any other offset than +00 is not what a session in UTC prints. */
const TIMESTAMP_TZ = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?\+00$/;
const WHOLE_SECONDS = 'YYYY-MM-DD HH:MM:SS'.length;
const NO_FRACTION = '.000000';

/** ISO 8601 in UTC with six digits. */
function parseTimestampTz(text: string): string {
  if (!TIMESTAMP_TZ.test(text)) return text;
  const end = text.length - '+00'.length;
  const missing = NO_FRACTION.slice(end - WHOLE_SECONDS);
  return `${text.slice(0, 10)}T${text.slice(11, end)}${missing}Z`;
}

/** ISO 8601 without an offset, with the digits that the server printed. */
function parseTimestamp(text: string): string {
  if (!TIMESTAMP.test(text)) return text;
  return `${text.slice(0, 10)}T${text.slice(11)}`;
}

/** By the OID of the built-in type; what is not here is text, dates and times of day included. */
const PARSERS: ReadonlyMap<number, ValueParser> = new Map<number, ValueParser>([
  [16, parseBool],
  [17, parseBytea],
  [21, parseInteger], // int2
  [23, parseInteger], // int4
  [26, parseInteger], // oid
  [700, parseFloat8], // float4
  [701, parseFloat8], // float8
  [1114, parseTimestamp],
  [1184, parseTimestampTz],
]);

/** How `exact` reads a type that is no array: without loss, or as text. */
export function exactParser(typeOid: number): ValueParser {
  return PARSERS.get(typeOid) ?? asText;
}
