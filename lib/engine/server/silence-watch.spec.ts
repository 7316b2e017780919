import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { SilenceWatch } from './silence-watch.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('asks about a session that is read and brings nothing, until it brings something', () => {
  const told: string[] = [];
  let paused = false;
  const silence = new SilenceWatch({ isPaused: () => paused }, (patience) => {
    told.push(`watched after ${patience} ms`);
    return () => told.push('left alone');
  });
  const pass = (seconds: number): void =>
    void vi.advanceTimersByTime(seconds * 1_000);

  for (let row = 0; row < 5; row += 1) {
    silence.heard();
    pass(8);
  }
  paused = true;
  pass(60);
  expect(told).toEqual([]);
  paused = false;
  pass(40);
  expect(told).toEqual(['watched after 0 ms']);
  silence.heard();
  pass(10);
  expect(told).toEqual(['watched after 0 ms', 'left alone']);
  pass(10);
  silence.end();
  expect(told.slice(2)).toEqual(['watched after 0 ms', 'left alone']);
  expect(vi.getTimerCount()).toBe(0);
});
