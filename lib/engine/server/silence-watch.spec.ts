import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { SilenceWatch } from './silence-watch.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function watched() {
  const told: string[] = [];
  const socket = new PassThrough();
  const silence = new SilenceWatch(socket, (patience) => {
    told.push(`watched after ${patience} ms`);
    return () => told.push('left alone');
  });
  return {
    told,
    socket,
    silence,
    /** Bytes arrive, of a row or a part of one. */
    bring: () => void socket.emit('data', Buffer.of(0)),
    pass: (seconds: number) => void vi.advanceTimersByTime(seconds * 1_000),
  };
}

it('asks about a session that is read and brings nothing, until it brings something', () => {
  const { told, socket, silence, bring, pass } = watched();
  for (let part = 0; part < 5; part += 1) {
    bring();
    pass(8);
  }
  socket.pause();
  pass(60);
  expect(told).toEqual([]);
  socket.resume();
  pass(40);
  expect(told).toEqual(['watched after 0 ms']);
  bring();
  pass(1);
  expect(told).toEqual(['watched after 0 ms', 'left alone']);
  pass(10);
  silence.end();
  expect(told.slice(2)).toEqual(['watched after 0 ms', 'left alone']);
  expect(vi.getTimerCount()).toBe(0);
  expect(socket.listenerCount('data')).toBe(0);
});

it.each([0, 999, 5_000, 9_999, 10_000])(
  'does not ask about a session that was paused, and is read again %i ms after a look',
  (milliseconds) => {
    const { told, socket, silence, bring, pass } = watched();
    for (let page = 0; page < 3; page += 1) {
      socket.pause();
      pass(20 + milliseconds / 1_000);
      socket.resume();
      pass(0.5);
      bring();
    }
    silence.end();
    expect(told).toEqual([]);
  },
);
