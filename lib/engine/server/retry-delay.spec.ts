import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { authenticationDelay, backoffDelay, pollDelay } from './retry-delay.js';

const random = fc.double({ min: 0, max: 1, noNaN: true });
const count = fc.integer({ min: 1, max: 1e9 });

describe('backoffDelay', () => {
  it('grows from half a second to half a minute, with jitter (G10)', () => {
    const longest = [1, 2, 3, 4, 5, 6, 7, 8, 1_000].map((attempt) =>
      backoffDelay(attempt, 1),
    );
    expect(longest).toEqual([
      500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000,
    ]);
    expect(backoffDelay(3, 0)).toBe(1_000);
  });

  it('is never shorter than a quarter of a second', () => {
    fc.assert(
      fc.property(count, random, (attempt, chance) => {
        expect(backoffDelay(attempt, chance)).toBeGreaterThanOrEqual(250);
        expect(backoffDelay(attempt, chance)).toBeLessThanOrEqual(30_000);
      }),
    );
  });
});

describe('authenticationDelay', () => {
  it('is short three times, and then more than a minute (G08, U07)', () => {
    expect(authenticationDelay(1, 1)).toBe(500);
    expect(authenticationDelay(2, 1)).toBe(1_000);
    for (const attempt of [3, 4, 100]) {
      expect(authenticationDelay(attempt, 0)).toBe(60_000);
      expect(authenticationDelay(attempt, 1)).toBe(75_000);
    }
  });
});

describe('pollDelay', () => {
  it('looks every second or two whether the slot is free (G05)', () => {
    fc.assert(
      fc.property(random, (chance) => {
        expect(pollDelay(chance)).toBeGreaterThanOrEqual(1_000);
        expect(pollDelay(chance)).toBeLessThanOrEqual(1_600);
      }),
    );
  });
});
