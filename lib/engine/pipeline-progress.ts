import { formatLsn } from './model/lsn.js';
import type { PipelineConnection } from './pipeline-connection.js';
import type { PipelineStatus } from './telemetry/pipeline-status.js';

const NOT_READING = { readsPerSecond: 0, bytesPerRead: 0, pacing: false };

/** Counts what a pipeline has done since the process began, and its attempts to connect. */
export class PipelineProgress {
  #attempt = 0;
  #nextRetryAt: Date | null = null;
  #transactions = 0;
  #changes = 0;
  #lastProgressAt: Date | null = null;

  delivered(changes: number): void {
    this.#transactions += 1;
    this.#changes += changes;
    this.#lastProgressAt = new Date();
  }

  failed(attempt: number, delayMs: number): void {
    this.#attempt = attempt;
    this.#nextRetryAt = new Date(Date.now() + delayMs);
  }

  /** It streams, or it was told to stop: no attempt is due. */
  settled(): void {
    this.#attempt = 0;
    this.#nextRetryAt = null;
  }

  get status(): Pick<
    PipelineStatus,
    'attempt' | 'nextRetryAt' | 'transactions' | 'changes' | 'lastProgressAt'
  > {
    return {
      attempt: this.#attempt,
      nextRetryAt: this.#nextRetryAt?.toISOString() ?? null,
      transactions: this.#transactions,
      changes: this.#changes,
      lastProgressAt: this.#lastProgressAt?.toISOString() ?? null,
    };
  }
}

/** What a connection adds to the status of its pipeline. */
export function connectionStatus(
  connection: PipelineConnection | null,
): Pick<
  PipelineStatus,
  | 'receivedLsn'
  | 'deliveredLsn'
  | 'durableLsn'
  | 'lag'
  | 'inflightBytes'
  | 'reading'
> {
  if (connection === null) {
    return {
      receivedLsn: null,
      deliveredLsn: null,
      durableLsn: null,
      lag: { bytes: 0, milliseconds: 0 },
      inflightBytes: 0,
      reading: NOT_READING,
    };
  }
  const { positions, current, inflightBytes, reading } = connection;
  const age = current === null ? 0 : Date.now() - current.commitTime.getTime();
  return {
    receivedLsn: formatLsn(positions.received),
    deliveredLsn: formatLsn(positions.delivered),
    durableLsn: formatLsn(positions.durable),
    lag: {
      bytes: Number(positions.received - positions.durable),
      milliseconds: Math.max(0, age),
    },
    inflightBytes,
    reading,
  };
}
