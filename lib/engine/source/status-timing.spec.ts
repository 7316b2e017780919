import { describe, expect, it } from 'vitest';
import { statusDueIn, statusInterval, storeDueIn } from './status-timing.js';

describe('statusInterval', () => {
  it('is a quarter of the timeout of the server (C11)', () => {
    expect(statusInterval(5_000)).toBe(1_250);
    expect(statusInterval(3_000)).toBe(750);
    expect(statusInterval(30_000)).toBe(7_500);
  });

  it('is at most 10 seconds', () => {
    expect(statusInterval(60_000)).toBe(10_000);
    expect(statusInterval(2_147_483_647)).toBe(10_000);
  });

  it('is 10 seconds where the timeout is off (C07)', () => {
    expect(statusInterval(0)).toBe(10_000);
  });

  it('never lets a timer spin', () => {
    expect(statusInterval(1)).toBe(1);
  });
});

describe('statusDueIn', () => {
  const quiet = {
    sinceLast: 0,
    interval: 10_000,
    moved: false,
    replyAsked: false,
  };

  it('waits for the interval when nothing happens', () => {
    expect(statusDueIn({ ...quiet, sinceLast: 4_000 })).toBe(6_000);
    expect(statusDueIn({ ...quiet, sinceLast: 10_000 })).toBe(0);
    expect(statusDueIn({ ...quiet, sinceLast: 99_000 })).toBe(0);
  });

  it('is at most every 100 ms while positions move', () => {
    expect(statusDueIn({ ...quiet, moved: true, sinceLast: 30 })).toBe(70);
    expect(statusDueIn({ ...quiet, moved: true, sinceLast: 100 })).toBe(0);
  });

  it('answers the server at once, but not a server that asks with every answer', () => {
    expect(statusDueIn({ ...quiet, replyAsked: true, sinceLast: 50 })).toBe(0);
    expect(statusDueIn({ ...quiet, replyAsked: true, sinceLast: 20 })).toBe(30);
    const both = { ...quiet, replyAsked: true, moved: true, sinceLast: 50 };
    expect(statusDueIn(both)).toBe(0);
  });

  it('never exceeds a short interval', () => {
    expect(statusDueIn({ ...quiet, moved: true, interval: 25 })).toBe(25);
  });
});

describe('storeDueIn', () => {
  it('stores once an interval', () => {
    expect(storeDueIn(2_000, 10_000, false)).toBe(8_000);
    expect(storeDueIn(10_000, 10_000, false)).toBe(0);
  });

  it('stores after a second when the server asks', () => {
    expect(storeDueIn(0, 10_000, true)).toBe(1_000);
    expect(storeDueIn(2_000, 10_000, true)).toBe(0);
    expect(storeDueIn(0, 750, true)).toBe(750);
  });
});
