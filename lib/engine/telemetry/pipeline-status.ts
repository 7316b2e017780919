import type { Delivery } from '../model/delivery.js';
import type { HaltCode } from '../model/halts.js';
import type { PipelineState } from './pipeline-state.js';
import type { NeverCopied, SnapshotStatus } from './snapshot-status.js';
import type { SourceWait } from './source-wait.js';
import type { StreamedStatus } from './streamed-status.js';
import type { SlotStatus } from './slot-status.js';

/** Where a pipeline is, ready for JSON: positions and times are text. */
export interface PipelineStatus {
  readonly pipeline: string;
  readonly slotName: string;
  readonly state: PipelineState;
  /** Why it is in this state, as far as there is something to say. */
  readonly reason: string | null;
  /** When the state was entered, ISO 8601. */
  readonly since: string;
  /** `standby` while another process holds the slot. */
  readonly role: 'active' | 'standby';
  /** Whether the server's stream is open. */
  readonly connected: boolean;
  /** When it streamed first since the process began, ISO 8601; `null` when it never did. */
  readonly startedAt: string | null;
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
    /**
     * WAL between what is durable and what was received, or the end of the server's WAL as `slot` knows it. Without a
     * connection, what `slot` says is not confirmed.
     */
    readonly bytes: number;
    /** Milliseconds since the commit of the oldest transaction in the open batch, or that the sink works on or failed at; 0 without one. */
    readonly milliseconds: number;
  };
  /**
   * What runs of the sink, a handler or the storing of a position; `null` while nothing does. Of the calls of an initial snapshot, which run
   * beside each other, the one that is idle for the longest time.
   */
  readonly handler: {
    /** Milliseconds since it was called. */
    readonly runningMilliseconds: number;
    /** Milliseconds since it last asked for a change, was called, or began to store a position again; 0 while it waits for the server. */
    readonly idleMilliseconds: number;
  } | null;
  /** What the source said of the slot when it was last asked, see {@link Pipeline.checkSlot}; `null` before. */
  readonly slot: SlotStatus | null;
  /** Payload received and not yet durable, with an allowance of 512 bytes for each transaction and message. */
  readonly inflightBytes: number;
  /**
   * What is kept of transactions that the server sends while they run, beside `inflightBytes`; `null` without the option `streaming`, and
   * without a connection.
   */
  readonly streamed: StreamedStatus | null;
  /** How the connection was read over the last second; zeros and `false` without one. */
  readonly reading: {
    /** Turns of the event loop in which bytes arrived. */
    readonly readsPerSecond: number;
    /** What each of them brought, in the mean. */
    readonly bytesPerRead: number;
    /** The stream is dense, so reading rests for some milliseconds now and then; see the option `readPacing`. */
    readonly pacing: boolean;
  };
  /** Transactions that the sink has applied since the process began, a repeated one each time; see the event `delivered`. */
  readonly transactions: number;
  /** Changes in them. */
  readonly changes: number;
  /** When it had applied the last of them, ISO 8601. */
  readonly lastProgressAt: string | null;
  /** How far a snapshot is, or was when it was done; `null` when this process has copied nothing. */
  readonly snapshot: SnapshotStatus | null;
  /**
   * What the publications carry and no snapshot has copied, see {@link Pipeline.snapshot}; `null` without the option `snapshot`, and while it
   * is not known.
   */
  readonly neverCopied: NeverCopied | null;
  /** What the creation of the slot, or the copy of rows, waits for on the source, when it does for longer than 10 s; `null` otherwise. */
  readonly waiting: SourceWait | null;
  readonly halt: {
    readonly code: HaltCode;
    readonly remedy: string;
    readonly detail: string;
    /** Commit position of the transaction, or position of the message, at which it halted. */
    readonly lsn: string | null;
    /** What the sink was handed when it failed; `null` for other halts. */
    readonly delivery: Delivery['kind'] | null;
    /** ISO 8601. */
    readonly at: string;
  } | null;
}
