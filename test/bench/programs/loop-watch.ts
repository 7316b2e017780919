import { closeSync, openSync, readSync } from 'node:fs';
import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';

const INTERVAL_MS = 1;

/** How long the event loop did not turn. */
export interface LoopUsage {
  /** The longest time between two turns of a timer, as `perf_hooks` tells it. */
  readonly loopDelayMs: number;
  /** The same without the time for which the system let others run on the processor; a millisecond too long at most. */
  readonly loopBlockedMs: number;
}

/** Watches the event loop of this process from now on. */
export class LoopWatch {
  readonly #histogram: IntervalHistogram = monitorEventLoopDelay({
    resolution: INTERVAL_MS,
  });
  readonly #waiting = new WaitingTime();
  readonly #timer: NodeJS.Timeout;
  #at = performance.now();
  #waited = this.#waiting.ms;
  #longest = 0;

  constructor() {
    this.#histogram.enable();
    this.#timer = setInterval(() => this.#look(), INTERVAL_MS);
  }

  stop(): LoopUsage {
    this.#look();
    clearInterval(this.#timer);
    this.#histogram.disable();
    this.#waiting.close();
    return {
      loopDelayMs: this.#histogram.max / 1e6,
      loopBlockedMs: this.#longest,
    };
  }

  #look(): void {
    const at = performance.now();
    const waited = this.#waiting.ms;
    const blocked = at - this.#at - (waited - this.#waited);
    this.#longest = Math.max(this.#longest, blocked);
    this.#at = at;
    this.#waited = waited;
  }
}

/**
 * How long the first thread of this process could have run and had no processor, as Linux counts it.
 *
 * @see {@link https://docs.kernel.org/scheduler/sched-stats.html | Scheduler Statistics}
 */
class WaitingTime {
  readonly #file: number | null;
  readonly #bytes = Buffer.alloc(64);

  constructor() {
    this.#file = openStatistics();
  }

  /** Since the process began; 0 where nobody can tell. */
  get ms(): number {
    if (this.#file === null) return 0;
    const length = readSync(this.#file, this.#bytes, 0, this.#bytes.length, 0);
    const [, waited] = this.#bytes.toString('latin1', 0, length).split(' ');
    return Number(waited) / 1e6;
  }

  close(): void {
    if (this.#file !== null) closeSync(this.#file);
  }
}

function openStatistics(): number | null {
  try {
    return openSync('/proc/self/schedstat', 'r');
  } catch {
    return null;
  }
}
