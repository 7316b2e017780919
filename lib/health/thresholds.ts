import type { ResolvedHealthOptions } from '../engine/options/health-options.js';
import type { PipelineStatus } from '../engine/telemetry/pipeline-status.js';

/** Which limits are exceeded. */
export interface Exceeded {
  readonly lag: boolean;
  readonly retainedWal: boolean;
  /** Less of the WAL budget is left than the limit says. */
  readonly safeWal: boolean;
  /** Less than {@link CRITICAL_PART} of that. */
  readonly safeWalCritical: boolean;
}

/** Part of `minSafeWalFraction` below which what is left of the WAL budget is critical. */
export const CRITICAL_PART = 0.3;
/** A limit that was exceeded is kept again only by a fifth less, so that a value near it does not flap. */
const KEPT_AGAIN = 0.8;

/**
 * Whether a value exceeds a limit, given whether it did before: an unknown value (`null`) is taken for unchanged.
 *
 * @param limit - `null` for none
 */
export function isAbove(
  before: boolean,
  value: number | null,
  limit: number | null,
): boolean {
  if (limit === null) return false;
  if (value === null) return before;
  return value > (before ? limit * KEPT_AGAIN : limit);
}

/** Whether a part of a whole is below a limit: the same from the other side. */
export function isBelow(
  before: boolean,
  part: number | null,
  limit: number | null,
): boolean {
  return isAbove(
    before,
    part === null ? null : 1 - part,
    limit === null ? null : 1 - limit,
  );
}

/** Watches the limits of one pipeline from probe to probe. */
export class Thresholds {
  #exceeded: Exceeded = {
    lag: false,
    retainedWal: false,
    safeWal: false,
    safeWalCritical: false,
  };
  #lagBytes = false;
  #lagMilliseconds = false;

  constructor(private readonly options: ResolvedHealthOptions) {}

  judge({ lag, slot }: Pick<PipelineStatus, 'lag' | 'slot'>): Exceeded {
    const { maxLagBytes, maxLagMilliseconds, maxRetainedBytes } = this.options;
    const { minSafeWalFraction: min } = this.options;
    const before = this.#exceeded;
    const left = slot?.safeWalFraction ?? null;
    this.#lagBytes = isAbove(this.#lagBytes, lag.bytes, maxLagBytes);
    this.#lagMilliseconds = isAbove(
      this.#lagMilliseconds,
      lag.milliseconds,
      maxLagMilliseconds,
    );
    this.#exceeded = {
      lag: this.#lagBytes || this.#lagMilliseconds,
      retainedWal: isAbove(
        before.retainedWal,
        slot?.retainedWalBytes ?? null,
        maxRetainedBytes,
      ),
      safeWal: isBelow(before.safeWal, left, min),
      safeWalCritical: isBelow(
        before.safeWalCritical,
        left,
        min === null ? null : min * CRITICAL_PART,
      ),
    };
    return this.#exceeded;
  }
}
