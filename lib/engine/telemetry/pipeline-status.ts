import type { HaltCode } from '../model/halts.js';
import type { PipelineState } from './pipeline-state.js';

/** Where a pipeline is, ready for JSON: positions and times are text. */
export interface PipelineStatus {
  readonly pipeline: string;
  readonly slotName: string;
  readonly state: PipelineState;
  /** Why it is in this state, as far as there is something to say. */
  readonly reason: string | null;
  /** When the state was entered, ISO 8601. */
  readonly since: string;
  /** Failed attempts to connect in a row. */
  readonly attempt: number;
  /** When the next attempt follows, ISO 8601; `null` when none is due. */
  readonly nextRetryAt: string | null;
  /** The server has sent this much; `null` before the first connection. */
  readonly receivedLsn: string | null;
  /** The sink was handed everything up to here. */
  readonly deliveredLsn: string | null;
  /** Everything up to here is durable in the sink. */
  readonly durableLsn: string | null;
  readonly lag: {
    /** WAL between what was received and what is durable. */
    readonly bytes: number;
    /** Age of the transaction that the sink works on; 0 when it works on none. */
    readonly milliseconds: number;
  };
  /** Payload received and not yet durable, with an allowance of 512 bytes for each transaction. */
  readonly inflightBytes: number;
  /** How the connection was read over the last second; zeros and `false` without one. */
  readonly reading: {
    /** Turns of the event loop in which bytes arrived. */
    readonly readsPerSecond: number;
    /** What each of them brought, in the mean. */
    readonly bytesPerRead: number;
    /** The stream is dense, so reading rests for some milliseconds now and then; see the option `readPacing`. */
    readonly pacing: boolean;
  };
  /** Transactions that became durable since the process began. */
  readonly transactions: number;
  /** Changes in them. */
  readonly changes: number;
  /** When the last of them became durable, ISO 8601. */
  readonly lastProgressAt: string | null;
  readonly halt: {
    readonly code: HaltCode;
    readonly remedy: string;
    readonly detail: string;
    /** Commit position of the transaction at which it halted. */
    readonly lsn: string | null;
    readonly at: string;
  } | null;
}
