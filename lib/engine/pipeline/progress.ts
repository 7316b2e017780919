import { formatLsn, parseLsn, type Lsn } from '../model/lsn.js';
import type { PipelineConnection } from './connection.js';
import type { SinkWork } from './work.js';
import type { Positions } from '../source/positions.js';
import type { PipelineState } from '../telemetry/pipeline-state.js';
import type { PipelineStatus } from '../telemetry/pipeline-status.js';
import type { SlotStatus } from '../telemetry/slot-status.js';

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

/** What is known of a pipeline from moment to moment. */
export function liveStatus(
  state: PipelineState,
  connection: PipelineConnection | null,
  work: SinkWork,
  slot: SlotStatus | null,
): Pick<
  PipelineStatus,
  | 'role'
  | 'connected'
  | 'receivedLsn'
  | 'deliveredLsn'
  | 'durableLsn'
  | 'lag'
  | 'handler'
  | 'inflightBytes'
  | 'reading'
  | 'slot'
> {
  const positions = connection?.positions ?? null;
  return {
    role: state === 'standby' ? 'standby' : 'active',
    connected:
      connection !== null && (state === 'streaming' || state === 'draining'),
    receivedLsn: textOf(positions?.received),
    deliveredLsn: textOf(positions?.delivered),
    durableLsn: textOf(positions?.durable),
    lag: {
      bytes: lagBytes(positions, slot),
      milliseconds: work.lagMilliseconds,
    },
    handler: work.status,
    inflightBytes: connection?.inflightBytes ?? 0,
    reading: connection?.reading ?? NOT_READING,
    slot,
  };
}

function textOf(position: Lsn | undefined): string | null {
  return position === undefined ? null : formatLsn(position);
}

/** What the server said a while ago may be behind what is durable by now. */
function lagBytes(positions: Positions | null, slot: SlotStatus | null) {
  if (positions === null) return slot?.lagBytes ?? 0;
  const { received, durable } = positions;
  const walEnd = parseLsn(slot?.walEndLsn ?? '') ?? 0n;
  const known = received > walEnd ? received : walEnd;
  return Math.max(0, Number(known - durable));
}
