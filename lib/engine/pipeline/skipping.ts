import type { PassOrder } from '../assemble/pass-order.js';
import { deferred } from '../model/deferred.js';
import type { Lsn } from '../model/lsn.js';
import { within } from '../model/within.js';
import { pollDelay } from '../server/retry-delay.js';

/** What passing over asks of its pipeline. */
export interface SkippingPorts {
  /** What the server has confirmed for the slot; `null` when there is no such position. May reject. */
  confirmedFlush(signal: AbortSignal): Promise<Lsn | null>;
  /** It was passed over, and will not come again. */
  skipped(): void;
}

/**
 * The order to pass over what the sink cannot apply, for one start of a pipeline. It is done when the end of it is durable,
 * stored with the checkpoint, and confirmed to the server.
 */
export class Skipping implements PassOrder {
  readonly #ports: SkippingPorts;
  readonly #done = deferred<void>();
  /** Nothing is asked of the server any more. */
  readonly #abort = new AbortController();
  /** Resolves when the pipeline that runs by this order ends. */
  readonly #ended = deferred<void>();
  /** Why it ended. */
  #failure: Error | null = null;
  /** Boundary behind it, once it was met; it is not when all of it was confirmed or applied before. */
  #end: Lsn | null = null;
  #stored = false;

  constructor(
    readonly of: PassOrder['of'],
    readonly lsn: Lsn,
    ports: SkippingPorts,
  ) {
    this.#ports = ports;
  }

  /**
   * Resolves when it is done.
   *
   * @throws the reason for which the pipeline ended before
   */
  get done(): Promise<void> {
    return this.#done.promise;
  }

  /** It was met in the stream and left out; it ends here. */
  passedOver(end: Lsn): void {
    this.#end = end;
  }

  /** Whether this position, which is durable and not stored, is to be stored now and not with the next that comes. */
  awaits(position: Lsn): boolean {
    return this.#end !== null && !this.#stored && position >= this.#end;
  }

  /** Everything up to here is durable, and stored where the checkpoint stores positions. */
  moved(position: Lsn): void {
    if (this.#stored || !this.#isWithin(position)) return;
    this.#stored = true;
    if (this.#end !== null) this.#ports.skipped();
    void this.#untilConfirmed();
  }

  /** The pipeline is stopped. */
  stopped(reason: Error): void {
    this.#done.reject(reason);
    this.#abort.abort();
    this.#over(reason);
  }

  /** The pipeline has halted. What it told the server last may be what is waited for, so that is looked at once more. */
  halted(reason: Error): void {
    if (!this.#stored) this.#done.reject(reason);
    this.#over(reason);
  }

  #over(reason: Error): void {
    this.#failure = reason;
    this.#ended.resolve();
  }

  async #untilConfirmed(): Promise<void> {
    for (;;) {
      const failure = this.#failure;
      if (await this.#isConfirmed()) return this.#done.resolve();
      if (failure !== null) return this.#done.reject(failure);
      await within(this.#ended.promise, pollDelay(Math.random()));
    }
  }

  /** What cannot be asked now is asked again. */
  async #isConfirmed(): Promise<boolean> {
    try {
      const confirmed = await this.#ports.confirmedFlush(this.#abort.signal);
      return confirmed !== null && this.#isWithin(confirmed);
    } catch {
      return false;
    }
  }

  /** Whether it lies below this boundary. */
  #isWithin(boundary: Lsn): boolean {
    return this.#end === null ? boundary > this.lsn : boundary >= this.#end;
  }
}
