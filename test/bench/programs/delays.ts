import { percentile } from '../report.js';
import { setting } from './settings.js';
import { wallClock } from './wall-clock.js';

/** Collects how long after their commits transactions were seen. */
export class Delays {
  readonly #now = wallClock();
  readonly #warmUp = Number(setting('WARM_UP'));
  readonly #wanted = Number(setting('TRANSACTIONS'));
  readonly #milliseconds: number[] = [];
  #seen = 0;

  /**
   * Takes one transaction, seen now.
   *
   * @returns whether it was the last
   */
  add(commitTimeMicros: bigint): boolean {
    const milliseconds = (this.#now() - Number(commitTimeMicros)) / 1000;
    if (++this.#seen <= this.#warmUp) return false;
    this.#milliseconds.push(milliseconds);
    return this.#milliseconds.length === this.#wanted;
  }

  summary(): Record<'transactions' | 'p50Ms' | 'p99Ms', number> {
    const sorted = this.#milliseconds.toSorted((a, b) => a - b);
    return {
      transactions: sorted.length,
      p50Ms: percentile(sorted, 50),
      p99Ms: percentile(sorted, 99),
    };
  }
}
