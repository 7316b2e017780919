import type { Lsn } from '../model/lsn.js';
import type { Transaction } from '../model/transaction.js';
import type { PipelineStatus } from '../telemetry/pipeline-status.js';

/** A transaction that is read while it arrives, as far as progress goes. */
interface Reading {
  /** When its reader last asked, by `performance.now()`. */
  readonly askedAt: number;
}

/**
 * What the sink works on, and whether it gets on with it. One thing at a time in the stream, and several in an initial snapshot; outlives
 * connections, as a handler may.
 */
export class SinkWork {
  #begunAt: number | null = null;
  /** When each call that runs beside others began. */
  readonly #beside = new Set<{ readonly begunAt: number }>();
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

  /**
   * The sink is called while it may be at work already.
   *
   * @param at - now, by `performance.now()`
   * @returns to be called when its promise has settled
   */
  beginBeside(at: number): () => void {
    const call = { begunAt: at };
    this.#beside.add(call);
    return () => this.#beside.delete(call);
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

  /** Of several calls that of the one which makes no progress for the longest time. */
  get status(): PipelineStatus['handler'] {
    const now = performance.now();
    let begunAt = this.#begunAt;
    let movedAt =
      begunAt === null
        ? now
        : Math.max(begunAt, this.#triedAt, this.#reading?.askedAt ?? 0);
    for (const beside of this.#beside) {
      if (begunAt !== null && beside.begunAt >= movedAt) continue;
      begunAt = beside.begunAt;
      movedAt = beside.begunAt;
    }
    return begunAt === null
      ? null
      : {
          runningMilliseconds: Math.round(now - begunAt),
          idleMilliseconds: Math.round(now - movedAt),
        };
  }
}
