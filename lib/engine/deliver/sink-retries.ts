import type { HaltCode } from '../model/halts.js';
import type { Lsn } from '../model/lsn.js';

/** How often the sink is asked again. */
export interface SinkRetryLimits {
  readonly maxRetries: number;
  /** Before the first time; doubles each time. */
  readonly backoffMs: number;
}

/** The next time that the sink is asked. */
export interface SinkRetry {
  /** Failed attempts in a row. */
  readonly attempt: number;
  readonly delayMs: number;
}

const COVERED: ReadonlySet<HaltCode> = new Set<HaltCode>([
  'sink_failed',
  'sink_failed/around_skipped',
  'snapshot_failed',
]);

const LONGEST_BACKOFF_MS = 30_000;

/** Counts how often the sink refused the same work. Outlives connections, since some work comes again only by a new one. */
export class SinkRetries {
  #lsn: Lsn | null = null;
  #failures = 0;

  constructor(readonly limits: SinkRetryLimits) {}

  /** Whether a halt of this kind is tried again at all: what a sink does may fail by chance, what it returns does not. */
  covers(code: HaltCode): boolean {
    return this.limits.maxRetries > 0 && COVERED.has(code);
  }

  /** The sink refused several works at once. What it refuses of them by itself counts. */
  get inParts(): SinkRetry {
    return { attempt: 1, delayMs: this.limits.backoffMs };
  }

  /** The sink refused the work at this position; `null` when that was the last time. */
  failed(lsn: Lsn): SinkRetry | null {
    if (lsn !== this.#lsn) this.#failures = 0;
    this.#lsn = lsn;
    this.#failures += 1;
    const { maxRetries, backoffMs } = this.limits;
    if (this.#failures > maxRetries) {
      this.#lsn = null;
      return null;
    }
    const doubled = backoffMs * 2 ** (this.#failures - 1);
    return {
      attempt: this.#failures,
      delayMs: Math.min(doubled, Math.max(backoffMs, LONGEST_BACKOFF_MS)),
    };
  }

  /** The work at this position is done. */
  succeeded(lsn: Lsn): void {
    if (lsn === this.#lsn) this.#lsn = null;
  }
}
