import { formatLsn } from '../model/lsn.js';
import type { WalHolder, SlotStatus } from '../telemetry/slot-status.js';
import type {
  OldTransaction,
  SlotSample,
  SlotSampleRow,
} from './slot-health.js';

/** A transaction that is younger holds nothing that anybody would miss. */
const OLD_AFTER_SECONDS = 10;

const NO_FACTS = {
  walEndLsn: null,
  active: null,
  activePid: null,
  waitsForStandby: null,
  walStatus: null,
  invalidationReason: null,
  retainedWalBytes: null,
  lagBytes: null,
  safeWalBytes: null,
  safeWalFraction: null,
  secondsToLoss: null,
  heldBy: null,
} as const;

interface TimedSample extends SlotSample {
  /** Seconds of a clock that never goes back. */
  readonly at: number;
}

/** Turns what the server says at single times into what follows from two of them. Pure but for what it remembers. */
export class SlotTrend {
  #last: TimedSample | null = null;
  #checkedAt: string | null = null;
  /** The oldest transaction, and when it was seen first. */
  #oldest: { readonly xid: string; readonly since: number } | null = null;

  /**
   * @param at - seconds of a clock that never goes back
   */
  answered(sample: SlotSample, at: number, now: Date): SlotStatus {
    const rate = walPerSecond(this.#last, { ...sample, at });
    this.#last = { ...sample, at };
    this.#checkedAt = now.toISOString();
    const common = {
      checkedAt: this.#checkedAt,
      reason: null,
      walEndLsn: formatLsn(sample.walEnd),
    };
    const { slot } = sample;
    if (slot === null) {
      this.#oldest = null;
      return { ...NO_FACTS, ...common, state: 'missing' };
    }
    const { oldest, keepBytes, ...facts } = slot;
    return {
      ...common,
      ...facts,
      state: 'present',
      safeWalFraction: fractionOf(slot.safeWalBytes, keepBytes),
      secondsToLoss: secondsToLoss(slot.safeWalBytes, rate),
      heldBy: this.#holder(oldest, slot, at),
    };
  }

  failed(reason: string): SlotStatus {
    return {
      ...NO_FACTS,
      state: 'unknown',
      checkedAt: this.#checkedAt,
      reason,
    };
  }

  #holder(
    oldest: OldTransaction | null,
    { retainedWalBytes, lagBytes }: SlotSampleRow,
    at: number,
  ): WalHolder | null {
    if (oldest === null) {
      this.#oldest = null;
      return null;
    }
    const { xid, ...holder } = oldest;
    if (this.#oldest?.xid !== xid) this.#oldest = { xid, since: at };
    const ageSeconds = holder.ageSeconds ?? Math.floor(at - this.#oldest.since);
    const held = (retainedWalBytes ?? 0) > (lagBytes ?? 0);
    return held && ageSeconds >= OLD_AFTER_SECONDS
      ? { ...holder, ageSeconds }
      : null;
  }
}

/** `null` when it cannot be told, as after a fail-over. */
function walPerSecond(
  before: TimedSample | null,
  after: TimedSample,
): number | null {
  if (before === null || after.at <= before.at) return null;
  const written = Number(after.walEnd - before.walEnd);
  return written < 0 ? null : written / (after.at - before.at);
}

function fractionOf(safe: number | null, keep: number | null): number | null {
  if (safe === null || keep === null || keep <= 0) return null;
  return Math.min(1, Math.max(0, safe / keep));
}

function secondsToLoss(
  safe: number | null,
  bytesPerSecond: number | null,
): number | null {
  if (safe === null || bytesPerSecond === null) return null;
  if (safe <= 0) return 0;
  return bytesPerSecond === 0 ? null : Math.floor(safe / bytesPerSecond);
}
