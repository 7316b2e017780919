import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { retryDelay } from './retry-delay.js';

describe('retryDelay', () => {
  it('grows from half a second to half a minute, with jitter (G10)', () => {
    const longest = [1, 2, 3, 4, 5, 6, 7, 8, 1_000].map((attempt) =>
      retryDelay('transient', attempt, 1),
    );
    expect(longest).toEqual([
      500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000,
    ]);
    expect(retryDelay('transient', 3, 0)).toBe(1_000);
  });

  it('tries wrong credentials three times soon and then at most once a minute (G08)', () => {
    expect(retryDelay('authentication', 1, 1)).toBe(500);
    expect(retryDelay('authentication', 2, 1)).toBe(1_000);
    for (const attempt of [3, 4, 100]) {
      expect(retryDelay('authentication', attempt, 0)).toBe(60_000);
      expect(retryDelay('authentication', attempt, 1)).toBe(75_000);
    }
  });

  it('looks every second or two whether the slot is free (G05)', () => {
    expect(retryDelay('slot_active', 1, 0)).toBe(1_000);
    expect(retryDelay('slot_active', 500, 1)).toBe(2_000);
  });

  it('is never shorter than a quarter of a second', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('transient', 'authentication', 'slot_active'),
        fc.integer({ min: 1, max: 1e9 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (errorClass, attempt, random) => {
          const delay = retryDelay(errorClass, attempt, random);
          expect(delay).toBeGreaterThanOrEqual(250);
          expect(delay).toBeLessThanOrEqual(75_000);
        },
      ),
    );
  });
});
