import { describe, expect, it } from 'vitest';
import { isName, isSlotName } from '../model/names.js';
import { ReplicantConfigError } from '../options/config-error.js';
import {
  publicationNamesLiteral,
  quoteIdentifier,
  quoteLiteral,
} from './identifiers.js';

describe('quoteIdentifier', () => {
  it('leaves names bare that need no quotes', () => {
    expect(quoteIdentifier('orders_1')).toBe('orders_1');
    expect(quoteIdentifier('_x')).toBe('_x');
  });

  it.each([
    ['Orders', '"Orders"'],
    ['1st', '"1st"'],
    ['a b', '"a b"'],
    ['a"; drop table t; --', '"a""; drop table t; --"'],
    ["it's", `"it's"`],
    ['Größe😀', '"Größe😀"'],
    ['a\n', '"a\n"'],
  ])('quotes %j', (name, quoted) => {
    expect(quoteIdentifier(name)).toBe(quoted);
  });

  it.each(['', 'a\0b', 'a'.repeat(64), 'ä'.repeat(32)])(
    'refuses a name that PostgreSQL refuses or cuts, without repeating it',
    (name) => {
      expect(() => quoteIdentifier(name, 'publication')).toThrow(
        new ReplicantConfigError(
          'publication',
          'must be a name of 1 to 63 bytes without a NUL byte.',
        ),
      );
    },
  );
});

describe('literals of replication commands', () => {
  it('double quotes', () => {
    expect(quoteLiteral("o'clock")).toBe("'o''clock'");
    expect(quoteLiteral('back\\slash')).toBe("'back\\slash'");
  });

  it('hold a list of quoted names', () => {
    expect(publicationNamesLiteral(['p', 'Q,r', 's"t', "u'v"])).toBe(
      `'p,"Q,r","s""t","u''v"'`,
    );
  });
});

describe('names', () => {
  it('of slots are lower case letters, digits and underscores', () => {
    expect(['a', '12345', '_', 's'.repeat(63)].map(isSlotName)).toEqual(
      Array(4).fill(true),
    );
    expect(
      ['', 'My-Slot', 'a b', 'ä', 'a\n', 'x" --', 's'.repeat(64)].map(
        isSlotName,
      ),
    ).toEqual(Array(7).fill(false));
  });

  it('have at most 63 bytes, not characters', () => {
    expect(isName('é'.repeat(31))).toBe(true);
    expect(isName('é'.repeat(32))).toBe(false);
  });
});
