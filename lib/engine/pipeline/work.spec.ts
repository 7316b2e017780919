import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { SinkWork } from './work.js';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Milliseconds for which the sink works, and makes no progress. */
function times(work: SinkWork): readonly (number | undefined)[] {
  const { status } = work;
  return [status?.runningMilliseconds, status?.idleMilliseconds];
}

describe('SinkWork', () => {
  it('knows nothing while the sink is not called', () => {
    const work = new SinkWork();
    expect(work.status).toBeNull();
    work.begin(performance.now());
    work.end();
    work.beginBeside(performance.now())();
    expect(work.status).toBeNull();
  });

  it('shows of several calls the one that is idle for the longest time', () => {
    const work = new SinkWork();
    const first = work.beginBeside(performance.now());
    vi.advanceTimersByTime(100);
    const second = work.beginBeside(performance.now());
    vi.advanceTimersByTime(10);
    expect(times(work)).toEqual([110, 110]);
    first();
    expect(times(work)).toEqual([10, 10]);
    const third = work.beginBeside(performance.now());
    vi.advanceTimersByTime(5);
    expect(times(work)).toEqual([15, 15]);
    second();
    expect(times(work)).toEqual([5, 5]);
    third();
    expect(work.status).toBeNull();
  });

  it('tells two calls apart that began at the same time', () => {
    const work = new SinkWork();
    const ends = [1, 2].map(() => work.beginBeside(performance.now()));
    vi.advanceTimersByTime(7);
    ends[0]?.();
    ends[0]?.();
    expect(times(work)).toEqual([7, 7]);
  });

  it('compares them with the one call of the stream by its progress', () => {
    const work = new SinkWork();
    work.begin(performance.now());
    vi.advanceTimersByTime(100);
    const end = work.beginBeside(performance.now());
    vi.advanceTimersByTime(10);
    expect(times(work)).toEqual([110, 110]);
    // It is tried again, so it does not hang.
    work.tryAgain(performance.now());
    expect(times(work)).toEqual([10, 10]);
    end();
    expect(times(work)).toEqual([110, 0]);
  });
});
