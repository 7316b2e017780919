import type { Lsn } from '../model/lsn.js';
import type { Transaction } from '../model/transaction.js';
import type { PipelineStatus } from '../telemetry/pipeline-status.js';

/** A transaction that is read while it arrives, as far as progress goes. */
interface Reading {
  /** When its reader last asked, by `performance.now()`. */
  readonly askedAt: number;
}

/**
 * What the sink works on, and whether it gets on with it. One thing at a time; outlives connections, as a handler may.
 */
export class SinkWork {
  #begunAt: number | null = null;
  #reading: Reading | null = null;
  /** When it was last tried again. */
  #triedAt = 0;
  /** The oldest transaction that waits for the sink, or was handed over, and is not known to be durable. */
  #undurable: { readonly commitLsn: Lsn; readonly committed: number } | null =
    null;

  /**
   * The sink is called.
   *
   * @param at - now, by `performance.now()`
   */
  begin(
    at: number,
    transaction?: Transaction,
    reading: Reading | null = null,
  ): void {
    this.#begunAt = at;
    this.#reading = reading;
    if (transaction !== undefined) this.wait(transaction);
  }

  /** A transaction waits until the sink is called with it, or works on it. */
  wait({ commitLsn, commitTime }: Transaction): void {
    const oldest = this.#undurable?.commitLsn;
    if (oldest !== undefined && oldest <= commitLsn) return;
    this.#undurable = { commitLsn, committed: commitTime.getTime() };
  }

  /** What runs failed and is tried again, so it does not hang. */
  tryAgain(at: number): void {
    this.#triedAt = at;
  }

  /** Its promise has settled. */
  end(): void {
    this.#begunAt = null;
    this.#reading = null;
  }

  /** Everything up to here is durable. */
  durable(position: Lsn): void {
    if (this.#undurable !== null && position > this.#undurable.commitLsn)
      this.#undurable = null;
  }

  /** Milliseconds since the commit of the transaction that the sink works on or failed at; 0 without one. */
  get lagMilliseconds(): number {
    if (this.#undurable === null) return 0;
    return Math.max(0, Date.now() - this.#undurable.committed);
  }

  get status(): PipelineStatus['handler'] {
    if (this.#begunAt === null) return null;
    const now = performance.now();
    const movedAt = Math.max(
      this.#begunAt,
      this.#triedAt,
      this.#reading?.askedAt ?? 0,
    );
    return {
      runningMilliseconds: Math.round(now - this.#begunAt),
      idleMilliseconds: Math.round(now - movedAt),
    };
  }
}
