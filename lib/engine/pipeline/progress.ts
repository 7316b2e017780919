import type { PipelineStatus } from '../telemetry/pipeline-status.js';

/** Counts what a pipeline has done since the process began, and its attempts to connect. */
export class PipelineProgress {
  #attempt = 0;
  #nextRetryAt: Date | null = null;
  #transactions = 0;
  #changes = 0;
  #lastProgressAt: Date | null = null;
  #startedAt: Date | null = null;

  delivered(changes: number): void {
    this.#transactions += 1;
    this.#changes += changes;
    this.#lastProgressAt = new Date();
  }

  failed(attempt: number, delayMs: number): void {
    this.#attempt = attempt;
    this.#nextRetryAt = new Date(Date.now() + delayMs);
  }

  streams(): void {
    this.#startedAt ??= new Date();
    this.settled();
  }

  /** It streams, or it was told to stop: no attempt is due. */
  settled(): void {
    this.#attempt = 0;
    this.#nextRetryAt = null;
  }

  get status(): Pick<
    PipelineStatus,
    | 'startedAt'
    | 'attempt'
    | 'nextRetryAt'
    | 'transactions'
    | 'changes'
    | 'lastProgressAt'
  > {
    return {
      startedAt: this.#startedAt?.toISOString() ?? null,
      attempt: this.#attempt,
      nextRetryAt: this.#nextRetryAt?.toISOString() ?? null,
      transactions: this.#transactions,
      changes: this.#changes,
      lastProgressAt: this.#lastProgressAt?.toISOString() ?? null,
    };
  }
}
