import { describe, expect, it } from 'vitest';
import { builtinModifier, likelyModifier } from './type-modifier.js';

// Every text and modifier is of PostgreSQL 17: format_type(atttypid, atttypmod), atttypmod.
const INTERVALS: readonly (readonly [number, string])[] = [
  [-1, 'interval'],
  [2147418115, 'interval(3)'],
  [327679, 'interval year'],
  [196607, 'interval month'],
  [589823, 'interval day'],
  [67174399, 'interval hour'],
  [134283263, 'interval minute'],
  [268500991, 'interval second'],
  [268435458, 'interval second(2)'],
  [458751, 'interval year to month'],
  [67698687, 'interval day to hour'],
  [201916415, 'interval day to minute'],
  [470351871, 'interval day to second'],
  [470286340, 'interval day to second(4)'],
  [201392127, 'interval hour to minute'],
  [469827583, 'interval hour to second'],
  [469762049, 'interval hour to second(1)'],
  [402718719, 'interval minute to second'],
  [402653184, 'interval minute to second(0)'],
];

describe('the modifier of a built-in type', () => {
  it.each(INTERVALS)('is %i of %s', (modifier, text) => {
    expect(builtinModifier(1186, text)).toBe(modifier);
    expect(builtinModifier(1187, `${text}[]`)).toBe(modifier);
  });

  it.each([
    [23, 'integer', -1],
    [25, 'text', -1],
    [18, 'char', -1],
    [1042, 'bpchar', -1],
    [1042, 'character(1)', 5],
    [1014, 'character(4)[]', 8],
    [1043, 'character varying', -1],
    [1043, 'character varying(10)', 14],
    [1015, 'character varying(7)[]', 11],
    [1700, 'numeric', -1],
    [1700, 'numeric(3,0)', 196612],
    [1700, 'numeric(5,-2)', 329730],
    [1231, 'numeric(10,2)[]', 655366],
    [1700, 'numeric(1000,1000)', 65537004],
    [1560, 'bit', -1],
    [1560, 'bit(1)', 1],
    [1561, 'bit(3)[]', 3],
    [1562, 'bit varying(9)', 9],
    [1083, 'time(2) without time zone', 2],
    [1266, 'time(3) with time zone', 3],
    [1114, 'timestamp(0) without time zone', 0],
    [1184, 'timestamp with time zone', -1],
    [1185, 'timestamp(6) with time zone[]', 6],
  ])('is read of %i, %s', (typeOid, text, modifier) => {
    expect(builtinModifier(typeOid, text)).toBe(modifier);
    expect(likelyModifier(typeOid, text)).toBe(modifier);
  });
});

it.each([
  ['vector(3)', 3],
  ['"S"."my type"(7)', 7],
  ['geometry(Point,4326)', -1],
  ['pair(1,2)', -1],
  ['mood', -1],
])('the modifier of another type is a guess: %s', (text, modifier) => {
  expect(builtinModifier(20_000, text)).toBeNull();
  expect(likelyModifier(20_000, text)).toBe(modifier);
});
