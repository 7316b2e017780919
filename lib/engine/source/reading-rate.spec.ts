import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ReadingRate } from './reading-rate.js';

const START = 5_000;

describe('ReadingRate', () => {
  it('is nothing before the first read', () => {
    expect(new ReadingRate(START).over(START)).toEqual({
      readsPerSecond: 0,
      bytesPerRead: 0,
    });
  });

  it('counts the reads of the last second and their mean size', () => {
    const rate = new ReadingRate(START);
    rate.note(100, START);
    rate.note(300, START + 200);
    expect(rate.over(START + 500)).toEqual({
      readsPerSecond: 2,
      bytesPerRead: 200,
    });
  });

  it('forgets what is older than two seconds', () => {
    const rate = new ReadingRate(START);
    rate.note(100, START + 10);
    expect(rate.over(START + 2_000).readsPerSecond).toBe(0);
  });

  it('forgets the second before bit by bit', () => {
    const rate = new ReadingRate(START);
    for (let read = 0; read < 100; read++) rate.note(10, START + read);
    expect(rate.over(START + 1_250)).toEqual({
      readsPerSecond: 75,
      bytesPerRead: 10,
    });
  });

  it('tells a steady rate, whenever it is asked', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 50 }),
        fc.nat({ max: 5_000 }),
        (every, later) => {
          const rate = new ReadingRate(START);
          const asked = START + 2_000 + later;
          for (let now = START; now <= asked; now += every) rate.note(7, now);
          const { readsPerSecond, bytesPerRead } = rate.over(asked);
          expect(bytesPerRead).toBe(7);
          expect(Math.abs(readsPerSecond - 1_000 / every)).toBeLessThan(3);
        },
      ),
    );
  });
});
