import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Deferred, deferred } from '../model/deferred.js';
import { SlotWatch } from './slot-watch.js';
import type { SlotSample } from '../server/slot-health.js';

const CACHE_MS = 10_000;
const TIMEOUT_MS = 5_000;
const MISSING: SlotSample = { walEnd: 1n, slot: null };

/** As the server refuses credentials. */
class Refused extends Error {
  readonly severity = 'FATAL';
  readonly code = '28P01';
}

let asked: Deferred<SlotSample | null>[];
let watch: SlotWatch;

beforeEach(() => {
  vi.useFakeTimers();
  asked = [];
  watch = new SlotWatch({
    cacheFor: CACHE_MS,
    timeout: TIMEOUT_MS,
    ask(signal) {
      const answer = deferred<SlotSample | null>();
      signal.addEventListener('abort', () => answer.reject(new Error('cut')));
      asked.push(answer);
      return answer.promise;
    },
  });
});
afterEach(() => {
  const timers = vi.getTimerCount();
  vi.useRealTimers();
  if (timers > 0) throw new Error('A timer is left.');
});

async function answered(sample: SlotSample | null = MISSING): Promise<void> {
  const done = watch.check(false);
  asked.at(-1)?.resolve(sample);
  await done;
}

describe('SlotWatch', () => {
  it('has one question under way at most, and asks again after a while', async () => {
    expect(watch.status).toBeNull();
    const checks = [watch.check(false), watch.check(false)];
    expect(asked).toHaveLength(1);
    asked[0]?.resolve(MISSING);
    await Promise.all(checks);
    expect(watch.status?.state).toBe('missing');
    vi.advanceTimersByTime(CACHE_MS - 1);
    await watch.check(false);
    expect(asked).toHaveLength(1);
    vi.advanceTimersByTime(1);
    await answered();
    expect(asked).toHaveLength(2);
  });

  it('gives up after its time, and knows nothing then', async () => {
    await answered();
    vi.advanceTimersByTime(CACHE_MS);
    const done = watch.check(false);
    vi.advanceTimersByTime(TIMEOUT_MS);
    await done;
    expect(watch.status).toMatchObject({
      state: 'unknown',
      reason: 'no answer in time',
    });
    expect(watch.status?.checkedAt).not.toBeNull();
    // That too is kept for a while.
    await watch.check(false);
    expect(asked).toHaveLength(2);
  });

  it('keeps what it knew when the question is cancelled, and may ask at once', async () => {
    await answered();
    vi.advanceTimersByTime(CACHE_MS);
    const done = watch.check(false);
    watch.cancel();
    await done;
    expect(watch.status?.state).toBe('missing');
    await answered();
    expect(asked).toHaveLength(3);
  });

  it('takes no answer that belongs to what it was told to forget', async () => {
    const done = watch.check(false);
    watch.forget();
    await done;
    expect(watch.status).toBeNull();
  });

  it('tries refused credentials once a minute, and not at all while somebody else does', async () => {
    const done = watch.check(true);
    asked[0]?.reject(new Refused());
    await done;
    expect(watch.status?.reason).toBe('server error 28P01 (invalid_password)');
    vi.advanceTimersByTime(60_000 - 1);
    await watch.check(false);
    expect(asked).toHaveLength(1);
    vi.advanceTimersByTime(1);
    await watch.check(true);
    expect(asked).toHaveLength(1);
    await answered();
    expect(asked).toHaveLength(2);

    vi.advanceTimersByTime(CACHE_MS);
    const again = watch.check(true);
    asked[2]?.reject(new Refused());
    await again;
    vi.advanceTimersByTime(60_000);
    watch.connected();
    const last = watch.check(true);
    expect(asked).toHaveLength(4);
    asked[3]?.resolve(MISSING);
    await last;
  });

  it('does not know what a server does not tell', async () => {
    await answered(null);
    expect(watch.status?.state).toBe('unknown');
  });
});
