import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RowRate } from './row-rate.js';

const START = 5_000;

describe('RowRate', () => {
  it('is nothing before the first row', () => {
    expect(new RowRate(START).over(START)).toBe(0);
  });

  it('takes no page for the rate of a whole second before that is over', () => {
    const rate = new RowRate(START);
    rate.note(1_000, START + 1);
    expect(rate.over(START + 2)).toBe(1_000);
  });

  it('forgets what is older than eleven seconds', () => {
    const rate = new RowRate(START);
    rate.note(1_000, START + 10);
    expect(rate.over(START + 10_999)).toBeGreaterThan(0);
    expect(rate.over(START + 11_000)).toBe(0);
    rate.note(500, START + 3_600_000);
    expect(rate.over(START + 3_600_000)).toBe(50);
  });

  it('follows a sink that becomes slow', () => {
    const rate = new RowRate(START);
    for (let second = 0; second < 60; second += 1)
      rate.note(second < 30 ? 9_000 : 10, START + second * 1_000);
    expect(rate.over(START + 60_000)).toBe(10);
  });

  it('tells a steady rate, whenever it is asked', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 400 }),
        fc.nat({ max: 30_000 }),
        (every, later) => {
          const rate = new RowRate(START);
          const asked = START + 2_000 + later;
          for (let now = START; now <= asked; now += every) rate.note(10, now);
          const exact = 10_000 / every;
          expect(Math.abs(rate.over(asked) - exact)).toBeLessThanOrEqual(
            // One page more or less, over the shortest time that was measured.
            10_000 / Math.min(2_000, later + 2_000) + 1,
          );
        },
      ),
    );
  });
});
