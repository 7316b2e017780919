import { formatLsn, parseLsn } from './model/lsn.js';
import type { PipelineConnection } from './pipeline-connection.js';
import type { PipelineStatus } from './telemetry/pipeline-status.js';
import type { SlotStatus } from './telemetry/slot-status.js';

const NOT_READING = { readsPerSecond: 0, bytesPerRead: 0, pacing: false };

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

/** What a connection adds to the status of its pipeline. */
export function connectionStatus(
  connection: PipelineConnection | null,
  slot: SlotStatus | null,
): Pick<
  PipelineStatus,
  'receivedLsn' | 'deliveredLsn' | 'durableLsn' | 'inflightBytes' | 'reading'
> & { readonly lagBytes: number } {
  if (connection === null) {
    return {
      receivedLsn: null,
      deliveredLsn: null,
      durableLsn: null,
      lagBytes: slot?.lagBytes ?? 0,
      inflightBytes: 0,
      reading: NOT_READING,
    };
  }
  const { positions, inflightBytes, reading } = connection;
  const walEnd = parseLsn(slot?.walEndLsn ?? '') ?? 0n;
  const known = positions.received > walEnd ? positions.received : walEnd;
  return {
    receivedLsn: formatLsn(positions.received),
    deliveredLsn: formatLsn(positions.delivered),
    durableLsn: formatLsn(positions.durable),
    // What was asked a while ago may be behind what is durable by now.
    lagBytes: Math.max(0, Number(known - positions.durable)),
    inflightBytes,
    reading,
  };
}
