import { describe, expect, it } from 'vitest';
import type { OldTransaction, SlotSampleRow } from './slot-health.js';
import { SlotTrend } from './slot-trend.js';

const NOW = new Date('2026-01-02T03:04:05.678Z');
const SLOT: SlotSampleRow = {
  active: true,
  activePid: 7,
  waitsForStandby: false,
  walStatus: 'reserved',
  invalidationReason: null,
  retainedWalBytes: 500,
  lagBytes: 100,
  safeWalBytes: 1_000,
  keepBytes: 2_000,
  oldest: null,
};
const OLD: OldTransaction = {
  xid: '90',
  pid: 5,
  gid: null,
  applicationName: 'job',
  ageSeconds: 10,
};

function at(
  seconds: number,
  trend: SlotTrend,
  slot: Partial<SlotSampleRow> | null = {},
  walEnd = 0n,
) {
  return trend.answered(
    { walEnd, slot: slot === null ? null : { ...SLOT, ...slot } },
    seconds,
    NOW,
  );
}

describe('SlotTrend', () => {
  it('tells when the budget is used up, by the rate between two answers (H02)', () => {
    const trend = new SlotTrend();
    expect(at(10, trend, {}, 1_000n).secondsToLoss).toBeNull();
    expect(at(20, trend, {}, 2_000n)).toMatchObject({
      safeWalBytes: 1_000,
      safeWalFraction: 0.5,
      secondsToLoss: 10,
    });
    // Nothing was written meanwhile; then the server is another one.
    expect(at(30, trend, {}, 2_000n).secondsToLoss).toBeNull();
    expect(at(40, trend, {}, 1_000n).secondsToLoss).toBeNull();
    expect(at(50, trend, { safeWalBytes: -5 }, 2_000n)).toMatchObject({
      safeWalFraction: 0,
      secondsToLoss: 0,
    });
    expect(at(60, trend, { safeWalBytes: null }, 3_000n)).toMatchObject({
      safeWalFraction: null,
      secondsToLoss: null,
    });
  });

  it('gives a part of the budget from 0 to 1, and none without a limit', () => {
    const trend = new SlotTrend();
    expect(at(1, trend, { safeWalBytes: 2_500 }).safeWalFraction).toBe(1);
    expect(at(2, trend, { keepBytes: null }).safeWalFraction).toBeNull();
    expect(at(3, trend, { keepBytes: 0 }).safeWalFraction).toBeNull();
  });

  it('names an old transaction while WAL is kept that is confirmed (A17)', () => {
    const trend = new SlotTrend();
    expect(at(1, trend, { oldest: OLD }).heldBy).toEqual({
      pid: 5,
      gid: null,
      applicationName: 'job',
      ageSeconds: 10,
    });
    expect(
      at(2, trend, { oldest: { ...OLD, ageSeconds: 9 } }).heldBy,
    ).toBeNull();
    // The consumer is what holds it.
    expect(at(3, trend, { oldest: OLD, lagBytes: 500 }).heldBy).toBeNull();
  });

  it('counts the age itself where the role may not see it', () => {
    const trend = new SlotTrend();
    const hidden = { ...OLD, ageSeconds: null };
    expect(at(100, trend, { oldest: hidden }).heldBy).toBeNull();
    expect(at(112, trend, { oldest: hidden }).heldBy?.ageSeconds).toBe(12);
    // The same session in another transaction.
    expect(
      at(120, trend, { oldest: { ...hidden, xid: '91' } }).heldBy,
    ).toBeNull();
  });

  it('keeps the time of the last answer when there is none, and no fact', () => {
    const trend = new SlotTrend();
    expect(trend.failed('server error 53300')).toMatchObject({
      state: 'unknown',
      checkedAt: null,
      reason: 'server error 53300',
    });
    at(1, trend);
    expect(trend.failed('no answer in time')).toMatchObject({
      state: 'unknown',
      checkedAt: NOW.toISOString(),
      active: null,
      lagBytes: null,
    });
  });

  it('says that the slot is missing, and how far the WAL reaches', () => {
    expect(at(1, new SlotTrend(), null, 0x10n)).toMatchObject({
      state: 'missing',
      checkedAt: NOW.toISOString(),
      walEndLsn: '0/10',
      walStatus: null,
    });
  });
});
