import type { ClientConfig, CustomTypesConfig } from 'pg';
import type { Delivery } from '../model/delivery.js';
import type { DecoderOptions } from './decoder-options.js';
import type {
  BatchOptions,
  CheckpointStoreOptions,
  SinkRetryOptions,
} from './delivery-options.js';
import type { HealthOptions } from './health-options.js';
import type { SnapshotOption } from './snapshot-options.js';
import type { StreamingOptions } from './streaming-options.js';

/** Settings of a connection as the `pg` module takes them, or a connection string. */
export type ConnectionSettings = string | ClientConfig;

/** Connection settings, or a function that returns them and is called for every connection. */
export type ConnectionOption =
  ConnectionSettings | (() => ConnectionSettings | Promise<ConnectionSettings>);

/**
 * What values sinks receive.
 *
 * - `exact`: nothing is lost; numbers that JavaScript cannot hold, times and JSON are text
 * - `pg`: what a SELECT through the `pg` module returns
 * - `text`: the server's text for every column
 * - a `pg` types configuration: own parsers by type OID
 */
export type TypesOption = 'exact' | 'pg' | 'text' | CustomTypesConfig;

/** Runs around each delivery: for CLS contexts, ORM contexts and spans. It cannot change the outcome. */
export type AroundDelivery = (
  delivery: Delivery,
  next: () => Promise<void>,
) => Promise<void>;

/** Options of one pipeline. */
export interface PipelineOptions extends DecoderOptions {
  /** The source. A replication connection and short ordinary ones are opened with these settings. */
  connection: ConnectionOption;
  /** Name of the replication slot: 1 to 63 of `a-z`, `0-9` and `_`. Created when it is absent. */
  slotName: string;
  /**
   * Lets the library keep the checkpoint, for a sink that cannot keep one beside its work: such as one that sends. Delivery is then at
   * least once; see docs/delivery.md. By default the sink keeps it.
   */
  checkpointStore?: CheckpointStoreOptions | null;
  /**
   * Bytes of received and not yet durable transactions and messages from which on the socket is paused: their payload, and an allowance
   * of 512 for each. A single transaction larger than this, or than 2 MiB, is handed over while it arrives.
   *
   * @default 16777216
   */
  maxInflightBytes?: number;
  /**
   * How often a fault that the server reports before the stream begins is tried again before the pipeline halts with
   * `command_error/exhausted`; 0 halts on the first. The count begins anew when the stream flows. A server that is down or
   * takes no more sessions is not counted, and is tried for ever. Two more faults have this limit: WAL that the server cannot
   * decode, and a slot that another process holds; that one is also waited for at least twice the server's
   * `wal_sender_timeout`, unless this is 0.
   *
   * @default 5
   */
  maxCommandRetries?: number;
  /**
   * Hands transactions to the sink's `@OnBatch()` method, several at a time. For a sink that keeps the checkpoint. By default each goes to
   * its `@OnTransaction()` method.
   */
  batchDelivery?: BatchOptions | null;
  /**
   * Whether logical messages (`pg_logical_emit_message()`) are asked for: transactional ones come with their transaction, others to the
   * sink's `@OnMessage()` methods, which are then needed.
   *
   * @default false
   */
  messages?: boolean;
  /**
   * Receives large transactions while they are still running, and keeps them until their commit: in memory, and with
   * `{ spill: {} }` on disk; `{}` is on with its defaults. By default the server keeps them until their commit.
   */
  streaming?: StreamingOptions | null;
  /** Delivers a transaction or a message that the sink refused again before the pipeline halts. By default it halts at once. */
  sinkRetry?: SinkRetryOptions | null;
  /**
   * Whether the slot is synchronized to standbys, so that it survives a fail-over. PostgreSQL 17 or later.
   *
   * @default false
   * @see {@link https://www.postgresql.org/docs/current/logical-replication-failover.html | Logical Replication Failover}
   */
  failover?: boolean;
  /**
   * Whether several processes share the slot: one streams, the others are `standby`, look every second or two whether the slot is
   * free, and take over when it is. None is ever driven out.
   *
   * @default false
   */
  leaderElection?: boolean;
  /**
   * Consent to start with the changes from now on, without the rows that exist already.
   *
   * @default false
   */
  goForwardOnly?: boolean;
  /**
   * Copies the rows that exist already to the sink's `@OnSnapshot()` method, which is then needed; see docs/snapshots.md. `true` copies them
   * before anything is streamed; `{ mode: 'incremental' }` in chunks beside the stream. Not together with `goForwardOnly`.
   *
   * @default false
   */
  snapshot?: SnapshotOption | null;
  /**
   * What values sinks receive; see {@link TypesOption}.
   *
   * @default 'exact'
   */
  types?: TypesOption;
  /**
   * Whether a dense stream over TCP (from about 4 MB a second) is read in larger pieces, with rests of up to 16 ms between them,
   * which saves work for the server and for this process. The first data after a silence never waits.
   *
   * @default true
   */
  readPacing?: boolean;
  /**
   * What follows a halt: `stay` leaves the process running, `exit` shuts it down with exit code 1.
   *
   * @default 'stay'
   */
  onHalt?: 'stay' | 'exit';
  /**
   * Whether the start of the application waits until the pipeline streams, or stands by (option `leaderElection`). It then fails
   * with a `HaltError` when the pipeline halts.
   *
   * @default 'background'
   */
  startup?: 'background' | 'wait';
  /**
   * Whether the pipeline starts with the application; otherwise `pipeline.start()` does it.
   *
   * @default true
   */
  autoStart?: boolean;
  /**
   * Milliseconds that a stopping pipeline waits for the running delivery; at most 2147483647.
   *
   * @default 10000
   */
  drainTimeout?: number;
  /** What counts as healthy; see docs/health.md. */
  health?: HealthOptions;
  /**
   * Runs around each delivery; see {@link AroundDelivery}. It has to call `next()` once; otherwise the pipeline halts with
   * `sink_failed/around_skipped`. By default nothing does.
   */
  around?: AroundDelivery | null;
}
