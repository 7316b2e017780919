import { describe, expect, it } from 'vitest';
import {
  type HealthOptions,
  resolveHealth,
} from '../engine/options/health-options.js';
import type { SlotStatus } from '../engine/telemetry/slot-status.js';
import { isAbove, isBelow, Thresholds } from './thresholds.js';

const UNKNOWN: SlotStatus = {
  state: 'unknown',
  checkedAt: null,
  reason: null,
  active: null,
  activePid: null,
  waitsForStandby: null,
  walStatus: null,
  invalidationReason: null,
  walEndLsn: null,
  retainedWalBytes: null,
  lagBytes: null,
  safeWalBytes: null,
  safeWalFraction: null,
  secondsToLoss: null,
  heldBy: null,
};

/** What is exceeded by these values, one probe after the other. */
function judged(
  options: HealthOptions,
  probes: readonly {
    readonly bytes?: number;
    readonly milliseconds?: number;
    readonly slot?: Partial<SlotStatus>;
  }[],
) {
  const thresholds = new Thresholds(resolveHealth(options));
  return probes.map(({ bytes = 0, milliseconds = 0, slot = {} }) =>
    thresholds.judge({
      lag: { bytes, milliseconds },
      slot: { ...UNKNOWN, ...slot },
    }),
  );
}

describe('a limit', () => {
  it('is exceeded above it, and kept again a fifth below', () => {
    const seen = [100, 101, 100, 81, 80, 100, 101].reduce<boolean[]>(
      (before, value) => [
        ...before,
        isAbove(before.at(-1) ?? false, value, 100),
      ],
      [],
    );
    expect(seen).toEqual([false, true, true, true, false, false, true]);
  });

  it('from below is the same for what is left of a whole', () => {
    const seen = [0.5, 0.49, 0.5, 0.59, 0.61, 0.5].reduce<boolean[]>(
      (before, part) => [...before, isBelow(before.at(-1) ?? false, part, 0.5)],
      [],
    );
    expect(seen).toEqual([false, true, true, true, false, false]);
    // However high it is, it can be kept again.
    expect(isBelow(true, 1, 0.99)).toBe(false);
  });

  it('is taken for what it was while the value is unknown, and for kept where there is none', () => {
    expect([isAbove(true, null, 1), isAbove(false, null, 1)]).toEqual([
      true,
      false,
    ]);
    expect([isAbove(true, 5, null), isBelow(true, 0, null)]).toEqual([
      false,
      false,
    ]);
  });
});

describe('the limits of a pipeline', () => {
  it('are apart for lag in bytes and in time', () => {
    const seen = judged({ maxLagBytes: 100, maxLagMilliseconds: 1_000 }, [
      { bytes: 101 },
      { bytes: 90, milliseconds: 1_001 },
      { bytes: 10, milliseconds: 900 },
      { bytes: 10, milliseconds: 10 },
    ]);
    expect(seen.map(({ lag }) => lag)).toEqual([true, true, true, false]);
  });

  it('warn of a WAL budget at half of it, and again at 15 % (H02)', () => {
    const seen = judged(
      {},
      [0.6, 0.5, 0.49, 0.16, 0.14, 0.3, 0.33, 0.59, 0.7].map((part) => ({
        slot: { safeWalFraction: part },
      })),
    );
    expect(
      seen.map(({ safeWal, safeWalCritical }) =>
        safeWalCritical ? 'critical' : safeWal ? 'low' : 'ok',
      ),
    ).toEqual([
      'ok',
      'ok',
      'low',
      'low',
      'critical',
      'critical',
      'low',
      'low',
      'ok',
    ]);
  });

  it('tell retained WAL from lag (A17)', () => {
    const [seen] = judged({ maxRetainedBytes: 100, maxLagBytes: 100 }, [
      { bytes: 5, slot: { retainedWalBytes: 101, lagBytes: 5 } },
    ]);
    expect(seen).toMatchObject({ retainedWal: true, lag: false });
  });
});
