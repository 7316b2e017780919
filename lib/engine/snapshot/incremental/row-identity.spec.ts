import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  identityOf,
  keyOfRecord,
  keyOfRow,
  rowKey,
  valuesOf,
} from './row-identity.js';

const value = fc.option(
  fc.string({ unit: fc.constantFrom('v', 'n', '\u0001', 'ü', '', '\\', ',') }),
);

it('two rows have one key only when their values are the same', () => {
  fc.assert(
    fc.property(
      fc.array(value, { minLength: 1, maxLength: 4 }),
      fc.array(value, { minLength: 1, maxLength: 4 }),
      (a, b) => {
        expect(rowKey(a) === rowKey(b)).toBe(
          JSON.stringify(a) === JSON.stringify(b),
        );
        expect(valuesOf(rowKey(a))).toEqual(a);
      },
    ),
  );
});

it('NULL is not the empty text', () => {
  expect(rowKey([null])).not.toBe(rowKey(['']));
  expect(rowKey([null, ''])).not.toBe(rowKey(['', null]));
});

it('a record of the stream has the key of the row that was read', () => {
  const columns = [
    { name: 'note', key: false },
    { name: '__proto__', key: true },
    { name: 'constructor', key: true },
  ];
  const identity = identityOf(columns);
  expect(identity.columns).toEqual(['__proto__', 'constructor']);
  const record = Object.fromEntries([
    ['note', 'x'],
    ['__proto__', '1'],
    ['constructor', '2'],
  ]);
  expect(keyOfRecord(record, identity)).toBe(keyOfRow(['x', '1', '2'], [1, 2]));
});

it('a record without a column of the identity has none', () => {
  const identity = identityOf([{ name: 'constructor', key: true }]);
  expect(keyOfRecord({}, identity)).toBeNull();
});

it('identities of other columns differ, however these are named', () => {
  const of = (...names: string[]): string =>
    identityOf(names.map((name) => ({ name, key: true }))).text;
  expect(of('a', 'b')).not.toBe(of('ab'));
  expect(of('a,b')).not.toBe(of('a', 'b'));
  expect(of('a', 'b')).toBe(of('a', 'b'));
});
