import { judgeError } from '../server/error-classes.js';
import type { SlotSample } from '../server/slot-health.js';
import { SlotTrend } from '../server/slot-trend.js';
import type { SlotStatus } from '../telemetry/slot-status.js';

/** How the source is asked, and how often. */
export interface SlotWatchPorts {
  /** Opens a session of its own and tears it down when the signal is aborted. */
  readonly ask: (signal: AbortSignal) => Promise<SlotSample | null>;
  readonly cacheFor: number;
  readonly timeout: number;
}

/** Attempts with refused credentials are rare, so that nobody is locked out. */
const REFUSED_PAUSE_MS = 60_000;

/**
 * Keeps what the source says of the slot. One question at most is under way, none is asked again within `cacheFor`, and one
 * that fails makes the slot unknown and nothing else.
 */
export class SlotWatch {
  readonly #ports: SlotWatchPorts;
  readonly #trend = new SlotTrend();
  #status: SlotStatus | null = null;
  #asking: {
    readonly done: Promise<void>;
    readonly abort: AbortController;
  } | null = null;
  #notBefore = Number.NEGATIVE_INFINITY;
  /** The last question was refused for its credentials. */
  #refused = false;

  constructor(ports: SlotWatchPorts) {
    this.#ports = ports;
  }

  /** The last answer; `null` before the first. */
  get status(): SlotStatus | null {
    return this.#status;
  }

  /**
   * Asks unless that is under way or was done just now; resolves when it is settled. Never rejects.
   *
   * @param others - somebody else keeps trying to connect, and does so as often as refused credentials allow
   */
  check(others: boolean): Promise<void> {
    if (this.#asking !== null) return this.#asking.done;
    if (performance.now() < this.#notBefore || (this.#refused && others))
      return Promise.resolve();
    const abort = new AbortController();
    const done = this.#ask(abort);
    this.#asking = { done, abort };
    return done;
  }

  /** Somebody else has connected: credentials that were refused may be tried again. */
  connected(): void {
    this.#refused = false;
  }

  /** Tears down the question under way. */
  cancel(): void {
    this.#asking?.abort.abort();
  }

  /** Nothing that was found holds any more. */
  forget(): void {
    this.cancel();
    this.#status = null;
    this.#notBefore = Number.NEGATIVE_INFINITY;
  }

  async #ask(abort: AbortController): Promise<void> {
    const { ask, cacheFor, timeout } = this.#ports;
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      abort.abort();
    }, timeout);
    const cancelled = (): boolean => abort.signal.aborted && !late;
    try {
      const sample = await ask(abort.signal);
      if (!cancelled()) this.#answered(sample);
    } catch (error) {
      if (!cancelled()) this.#failed(error, late);
    } finally {
      clearTimeout(timer);
      this.#asking = null;
      if (!cancelled())
        this.#notBefore =
          performance.now() +
          (this.#refused ? Math.max(cacheFor, REFUSED_PAUSE_MS) : cacheFor);
    }
  }

  #answered(sample: SlotSample | null): void {
    this.#refused = false;
    this.#status =
      sample === null
        ? this.#trend.failed('the server does not tell the end of its WAL')
        : this.#trend.answered(sample, performance.now() / 1_000, new Date());
  }

  #failed(error: unknown, late: boolean): void {
    const judged = judgeError(error, 'connecting');
    this.#refused = judged.class === 'authentication';
    this.#status = this.#trend.failed(
      late ? 'no answer in time' : judged.reason,
    );
  }
}
