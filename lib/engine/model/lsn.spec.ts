import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatLsn, parseLsn, watermarkBelow } from './lsn.js';

describe('a position as text', () => {
  it('is two hexadecimal halves in upper case without leading zeros', () => {
    expect(formatLsn(0n)).toBe('0/0');
    expect(formatLsn(0x16e3778n)).toBe('0/16E3778');
    expect(formatLsn(0xff_ffff_ffffn)).toBe('FF/FFFFFFFF');
    expect(formatLsn(2n ** 64n - 1n)).toBe('FFFFFFFF/FFFFFFFF');
  });

  it('is read back', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), (lsn) => {
        expect(parseLsn(formatLsn(lsn))).toBe(lsn);
        expect(parseLsn(formatLsn(lsn).toLowerCase())).toBe(lsn);
      }),
    );
  });

  it.each([
    '',
    '0',
    '0/',
    '/0',
    '0/0/0',
    '1/100000000',
    '0/G',
    ' 0/0',
    '0/0\n',
  ])('is no position: %j', (text) => {
    expect(parseLsn(text)).toBeNull();
  });
});

describe('watermarkBelow', () => {
  it('leaves the transaction whose commit record starts at the boundary to come', () => {
    expect(watermarkBelow(100n)).toBe(99n);
    expect(100n <= watermarkBelow(100n)).toBe(false);
    expect(99n <= watermarkBelow(100n)).toBe(true);
  });

  it('knows nothing below zero', () => {
    expect(watermarkBelow(0n)).toBe(0n);
  });
});
