import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { deferred } from '../model/deferred.js';
import type { CommandSession } from '../server/session.js';
import { Heartbeat } from './heartbeat.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A session that answers as it is told, and notes what happens to it. */
function session(answer: () => Promise<readonly []>) {
  const told: string[] = [];
  const query = async (text: string): Promise<readonly []> => {
    told.push(text);
    return answer();
  };
  const commands: CommandSession = { query, queryPatiently: query };
  return { told, commands, destroy: () => void told.push('cut') };
}

describe('Heartbeat', () => {
  it.each([
    ['a quarter of the timeout of the server', 8_000, 2_000],
    ['ten seconds at most', 60_000, 10_000],
    ['ten seconds where the server has none', 0, 10_000],
  ])('asks every %s', async (_what, timeout, interval) => {
    const asked = session(async () => []);
    const heartbeat = new Heartbeat(asked, timeout);
    await vi.advanceTimersByTimeAsync(interval * 2);
    expect(asked.told).toEqual([]);
    heartbeat.start();
    heartbeat.start();
    await vi.advanceTimersByTimeAsync(interval * 3);
    expect(asked.told).toEqual(['select', 'select', 'select']);
    heartbeat.stop();
    await vi.advanceTimersByTimeAsync(interval * 3);
    expect(asked.told).toHaveLength(3);
    expect(vi.getTimerCount()).toBe(0);
  });

  it.each([
    [1_000, 250, 2_000],
    [60_000, 10_000, 30_000],
    [0, 10_000, 30_000],
  ])(
    'cuts a session that is silent, with the timeout %i',
    async (timeout, interval, limit) => {
      const answer = deferred<readonly []>();
      const silent = session(() => answer.promise);
      const heartbeat = new Heartbeat(silent, timeout);
      heartbeat.start();
      await vi.advanceTimersByTimeAsync(interval + limit - 1);
      expect(silent.told).toEqual(['select']);
      await vi.advanceTimersByTimeAsync(1);
      expect(silent.told).toEqual(['select', 'cut']);
      answer.reject(new Error('cut'));
      await vi.advanceTimersByTimeAsync(interval * 4);
      expect(silent.told).toHaveLength(2);
      expect(vi.getTimerCount()).toBe(0);
    },
  );
});
