import { ReplicantConfigError } from './config-error.js';
import {
  count,
  milliseconds,
  nested,
  positiveInteger,
  refuseUnknown,
  tableName,
} from './option-checks.js';
import type { ConnectionOption } from './pipeline-options.js';

/** When an open batch is closed. Besides, it is closed at a quarter of `maxInflightBytes`, and before whatever cannot wait for it. */
export interface BatchOptions {
  /**
   * Transactions in it.
   *
   * @default 100
   */
  maxTransactions?: number;
  /**
   * Milliseconds since its first transaction.
   *
   * @default 1000
   */
  maxDelayMs?: number;
}

/** {@link BatchOptions} after validation. */
export type ResolvedBatchOptions = Readonly<Required<BatchOptions>>;

/** Where the library keeps the checkpoint of a sink that keeps none itself. */
export interface CheckpointStoreOptions {
  /** The database of the table: the source, or another one. */
  connection: ConnectionOption;
  /**
   * Name of the table, without schema: the search path of the connection decides where it is. Created when it is missing.
   *
   * @default 'replicant_checkpoints'
   */
  table?: string;
  /**
   * How often a read or a write of the checkpoint that failed is tried again before the pipeline halts; 0 halts on the first.
   *
   * @default 5
   */
  maxRetries?: number;
  /**
   * Milliseconds between two attempts.
   *
   * @default 1000
   */
  retryBackoffMs?: number;
  /** Writes the checkpoint once for several transactions. By default after each. */
  batch?: BatchOptions | null;
}

/** {@link CheckpointStoreOptions} after validation. Without the connection, which holds secrets. */
export interface ResolvedCheckpointStoreOptions {
  readonly table: string;
  readonly maxRetries: number;
  readonly retryBackoffMs: number;
  readonly batch: ResolvedBatchOptions | null;
}

/** How a transaction, or a message outside transactions, that the sink refused is delivered again before the pipeline halts. */
export interface SinkRetryOptions {
  /**
   * How often.
   *
   * @default 0
   */
  maxRetries?: number;
  /**
   * Milliseconds before the first time; they double each time, up to 30 seconds.
   *
   * @default 1000
   */
  backoffMs?: number;
}

/** {@link SinkRetryOptions} after validation. */
export type ResolvedSinkRetryOptions = Readonly<Required<SinkRetryOptions>>;

const BATCH = new Set(['maxTransactions', 'maxDelayMs']);
const STORE = new Set([
  'connection',
  'table',
  'maxRetries',
  'retryBackoffMs',
  'batch',
]);
const SINK_RETRY = new Set(['maxRetries', 'backoffMs']);
const NOT_OF_STORE = new Map([
  ['maxTransactions', 'belongs under checkpointStore.batch.'],
  ['maxDelayMs', 'belongs under checkpointStore.batch.'],
  ['backoffMs', 'is called retryBackoffMs here.'],
]);
const NOT_OF_SINK_RETRY = new Map([
  ['retryBackoffMs', 'is called backoffMs here.'],
]);

/**
 * Checks the option `checkpointStore`, all of it but its connection.
 *
 * @throws {ReplicantConfigError} for the first setting that cannot work, named such as `checkpointStore.table`
 */
export function resolveCheckpointStore(
  value: CheckpointStoreOptions | null | undefined,
): ResolvedCheckpointStoreOptions | null {
  if (value === undefined || value === null) return null;
  const options = nested('checkpointStore', value);
  refuseUnknown(options, STORE, 'checkpointStore.', NOT_OF_STORE);
  return {
    table: tableName(
      'checkpointStore.table',
      options.table,
      'replicant_checkpoints',
    ),
    maxRetries: count('checkpointStore.maxRetries', options.maxRetries, 5),
    retryBackoffMs: milliseconds(
      'checkpointStore.retryBackoffMs',
      options.retryBackoffMs,
      1_000,
    ),
    batch: resolveBatch('checkpointStore.batch', options.batch),
  };
}

/**
 * Checks the option `batchDelivery`.
 *
 * @throws {ReplicantConfigError} for the first setting that cannot work, and beside `checkpointStore`
 */
export function resolveBatchDelivery(
  value: BatchOptions | null | undefined,
  withStore: boolean,
): ResolvedBatchOptions | null {
  if (value !== undefined && value !== null && withStore) {
    throw new ReplicantConfigError(
      'batchDelivery',
      'goes with a checkpoint of the sink; with checkpointStore use checkpointStore.batch.',
    );
  }
  return resolveBatch('batchDelivery', value);
}

/**
 * Checks the option `sinkRetry`.
 *
 * @throws {ReplicantConfigError} for the first setting that cannot work
 */
export function resolveSinkRetry(
  value: SinkRetryOptions | null | undefined,
): ResolvedSinkRetryOptions {
  const options = nested('sinkRetry', value ?? {});
  refuseUnknown(options, SINK_RETRY, 'sinkRetry.', NOT_OF_SINK_RETRY);
  return {
    maxRetries: count('sinkRetry.maxRetries', options.maxRetries, 0),
    backoffMs: milliseconds('sinkRetry.backoffMs', options.backoffMs, 1_000),
  };
}

function resolveBatch(
  option: string,
  value: BatchOptions | null | undefined,
): ResolvedBatchOptions | null {
  if (value === undefined || value === null) return null;
  const options = nested(option, value);
  refuseUnknown(options, BATCH, `${option}.`);
  return {
    maxTransactions: positiveInteger(
      `${option}.maxTransactions`,
      options.maxTransactions,
      100,
    ),
    maxDelayMs: milliseconds(`${option}.maxDelayMs`, options.maxDelayMs, 1_000),
  };
}
