import { builtinType } from '../../values/builtin-types.js';

const NONE = -1;

/** Length of the header that counts as part of a length. */
const VARHDRSZ = 4;

const BPCHAR = 1042;
const VARCHAR = 1043;
const TIME = 1083;
const TIMESTAMP = 1114;
const TIMESTAMPTZ = 1184;
const INTERVAL = 1186;
const TIMETZ = 1266;
const BIT = 1560;
const VARBIT = 1562;
const NUMERIC = 1700;

/** What a `numeric` keeps of its scale, which may be negative. */
const SCALE_MASK = 0x7ff;

/** Bits of the fields of an `interval`, in their order. */
const INTERVAL_FIELDS: readonly (readonly [name: string, bit: number])[] = [
  ['year', 1 << 2],
  ['month', 1 << 1],
  ['day', 1 << 3],
  ['hour', 1 << 10],
  ['minute', 1 << 11],
  ['second', 1 << 12],
];
const ALL_FIELDS = 0x7fff;
const FULL_PRECISION = 0xffff;

const MODIFIER = /\((\d+)(?:,(-?\d+))?\)/;

/**
 * The modifier (`atttypmod`) that the text of a built-in type shows, such as 14 for `character varying(10)`. An array has that of its elements.
 *
 * @param text - the type as `format_type` prints it
 * @returns `null` for a type that is not built in, as its own functions print its modifier
 */
export function builtinModifier(typeOid: number, text: string): number | null {
  const type = builtinType(typeOid);
  if (type === undefined) return null;
  const [, first, second] = MODIFIER.exec(text) ?? [];
  const number = first === undefined ? null : Number(first);
  switch (type.element ?? typeOid) {
    case BPCHAR:
    case VARCHAR:
      return number === null ? NONE : number + VARHDRSZ;
    case NUMERIC:
      return number === null
        ? NONE
        : ((number << 16) | (Number(second) & SCALE_MASK)) + VARHDRSZ;
    case INTERVAL:
      return intervalModifier(text, number);
    case BIT:
    case VARBIT:
    case TIME:
    case TIMETZ:
    case TIMESTAMP:
    case TIMESTAMPTZ:
      return number ?? NONE;
    default:
      return NONE;
  }
}

/** The modifier of any type, as far as its text shows one: that of an extension is most often the number in the text. */
export function likelyModifier(typeOid: number, text: string): number {
  const [, first, second] = MODIFIER.exec(text) ?? [];
  return (
    builtinModifier(typeOid, text) ??
    (first === undefined || second !== undefined ? NONE : Number(first))
  );
}

function intervalModifier(text: string, precision: number | null): number {
  const named = INTERVAL_FIELDS.flatMap(([name], index) =>
    text.includes(` ${name}`) ? [index] : [],
  );
  const [first, last = first] = named;
  if (first === undefined || last === undefined)
    return precision === null ? NONE : (ALL_FIELDS << 16) | precision;
  const fields = INTERVAL_FIELDS.slice(first, last + 1).reduce(
    (bits, [, bit]) => bits | bit,
    0,
  );
  return (fields << 16) | (precision ?? FULL_PRECISION);
}
