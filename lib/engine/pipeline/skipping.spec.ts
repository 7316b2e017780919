import { describe, expect, it, vi } from 'vitest';
import { deferred, waitFor } from '../../../test/support/wait-for.js';
import type { Lsn } from '../model/lsn.js';
import { Skipping } from './skipping.js';

const STOPPED = new Error('stopped');
const HALTED = new Error('halted');

/** An order to pass over the transaction from 10 to 20, and a server that answers as told. */
function ordered(confirmed: (signal: AbortSignal) => Promise<Lsn | null>) {
  const events: string[] = [];
  const skipping = new Skipping('transaction', 10n, {
    confirmedFlush: (signal) => {
      events.push('asked');
      return confirmed(signal);
    },
    skipped: () => events.push('skipped'),
  });
  skipping.done.then(
    () => events.push('done'),
    (error: unknown) =>
      events.push(error instanceof Error ? error.message : ''),
  );
  return { skipping, events };
}

async function settled(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

describe('an order to skip', () => {
  it('asks the server when the end is stored, and is done when that is confirmed', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const answers = [null, 19n, 20n];
    const { skipping, events } = ordered(async () => answers.shift() ?? null);
    skipping.passedOver(20n);
    skipping.moved(19n);
    expect(events).toEqual([]);
    skipping.moved(20n);
    skipping.moved(30n);
    await vi.advanceTimersByTimeAsync(5_000);
    vi.useRealTimers();
    expect(events).toEqual(['skipped', 'asked', 'asked', 'asked', 'done']);
  });

  it('goes on asking when the server cannot be asked', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    let up = false;
    const { skipping, events } = ordered(async () => {
      if (!up) throw new Error('away');
      return 20n;
    });
    skipping.passedOver(20n);
    skipping.moved(20n);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(events).not.toContain('done');
    up = true;
    await vi.advanceTimersByTimeAsync(5_000);
    vi.useRealTimers();
    expect(events.at(-1)).toBe('done');
  });

  it('has nothing to tell of what was past before it was met, which only a boundary above it proves', async () => {
    const { skipping, events } = ordered(async () => 11n);
    skipping.moved(10n);
    await settled();
    expect(events).toEqual([]);
    skipping.moved(11n);
    await settled();
    expect(events).toEqual(['asked', 'done']);
  });

  it('wants its end to be stored once it is durable, and no longer', () => {
    const { skipping } = ordered(async () => null);
    expect(skipping.awaits(20n)).toBe(false);
    skipping.passedOver(20n);
    expect(skipping.awaits(19n)).toBe(false);
    expect(skipping.awaits(20n)).toBe(true);
    skipping.moved(20n);
    expect(skipping.awaits(20n)).toBe(false);
    skipping.stopped(STOPPED);
  });

  it('fails with a pipeline that halts before it is stored', async () => {
    const { skipping, events } = ordered(async () => 20n);
    skipping.passedOver(20n);
    skipping.halted(HALTED);
    await settled();
    expect(events).toEqual(['halted']);
  });

  it.each<[string, Lsn, string]>([
    ['is done', 20n, 'done'],
    ['fails', 19n, 'halted'],
  ])(
    'asks once more when the pipeline halts behind it, and then %s',
    async (_, confirmed, outcome) => {
      const first = deferred<Lsn>();
      const { skipping, events } = ordered(() =>
        events.length > 2 ? Promise.resolve(confirmed) : first.promise,
      );
      skipping.passedOver(20n);
      skipping.moved(20n);
      skipping.halted(HALTED);
      // Asked before the last that the server was told.
      first.resolve(19n);
      await settled();
      expect(events).toEqual(['skipped', 'asked', 'asked', outcome]);
    },
  );

  it('fails at once with a pipeline that is stopped, and tears its question down', async () => {
    const aborted: boolean[] = [];
    const { skipping, events } = ordered(async (signal) => {
      await waitFor(() => signal.aborted);
      aborted.push(true);
      return 20n;
    });
    skipping.passedOver(20n);
    skipping.moved(20n);
    skipping.stopped(STOPPED);
    await settled();
    expect(events.slice(0, 3)).toEqual(['skipped', 'asked', 'stopped']);
    await waitFor(() => aborted.length === 1);
    expect(events).not.toContain('done');
  });
});
