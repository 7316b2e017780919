import pg from 'pg';
import { isSlotName } from '../model/names.js';
import { ReplicantConfigError } from './config-error.js';
import {
  requireCapabilities,
  resolveDecoder,
  type ResolvedDecoder,
} from './decoder-options.js';
import {
  resolveBatchDelivery,
  resolveCheckpointStore,
  resolveSinkRetry,
  type CheckpointStoreOptions,
  type ResolvedBatchOptions,
  type ResolvedCheckpointStoreOptions,
  type ResolvedSinkRetryOptions,
} from './delivery-options.js';
import { resolveHealth, type ResolvedHealthOptions } from './health-options.js';
import {
  count,
  flag,
  milliseconds,
  oneOf,
  positiveInteger,
  refuseUnknown,
} from './option-checks.js';
import {
  resolveSnapshot,
  type ResolvedSnapshotOptions,
} from './snapshot-options.js';
import {
  resolveStreaming,
  type ResolvedStreamingOptions,
} from './streaming-options.js';
import type {
  AroundDelivery,
  ConnectionOption,
  PipelineOptions,
  TypesOption,
} from './pipeline-options.js';

/**
 * {@link PipelineOptions} after validation, with every default filled in. Without the connection, which holds secrets: what
 * shows a pipeline shows its options.
 */
export interface ResolvedOptions {
  readonly slotName: string;
  readonly decoder: ResolvedDecoder;
  readonly checkpointStore: ResolvedCheckpointStoreOptions | null;
  readonly maxInflightBytes: number;
  readonly maxCommandRetries: number;
  readonly batchDelivery: ResolvedBatchOptions | null;
  readonly messages: boolean;
  readonly streaming: ResolvedStreamingOptions | null;
  readonly sinkRetry: ResolvedSinkRetryOptions;
  readonly failover: boolean;
  readonly leaderElection: boolean;
  readonly goForwardOnly: boolean;
  readonly snapshot: ResolvedSnapshotOptions | null;
  readonly types: TypesOption;
  readonly readPacing: boolean;
  readonly onHalt: 'stay' | 'exit';
  readonly startup: 'background' | 'wait';
  readonly autoStart: boolean;
  readonly drainTimeout: number;
  readonly health: ResolvedHealthOptions;
  readonly around: AroundDelivery | null;
}

const KNOWN = new Set([
  'connection',
  'decoder',
  'slotName',
  'publication',
  'replicationSets',
  'tables',
  'allowKeylessTables',
  'schemaCheckInterval',
  'checkpointStore',
  'maxInflightBytes',
  'maxCommandRetries',
  'batchDelivery',
  'messages',
  'streaming',
  'sinkRetry',
  'failover',
  'leaderElection',
  'goForwardOnly',
  'snapshot',
  'types',
  'readPacing',
  'onHalt',
  'startup',
  'autoStart',
  'drainTimeout',
  'health',
  'around',
]);

/** What stands beside the options that it belongs to, or is named as other things are. */
const ELSEWHERE = new Map([
  [
    'batch',
    'belongs under checkpointStore; a sink that keeps its checkpoint has batchDelivery.',
  ],
  ['maxTransactions', 'belongs under batchDelivery, or checkpointStore.batch.'],
  ['maxDelayMs', 'belongs under batchDelivery, or checkpointStore.batch.'],
  ['maxRetries', 'belongs under sinkRetry, or checkpointStore.'],
  ['spill', 'belongs under streaming.'],
  ['maxConcurrentTxns', 'belongs under streaming.'],
  ['maxSpillBytes', 'belongs under streaming.spill.'],
  ['mode', 'belongs under snapshot.'],
  ['parallelTables', 'belongs under snapshot.'],
  ['chunkRows', 'belongs under snapshot.'],
  ['maxPendingChunks', 'belongs under snapshot.'],
  ['publications', 'is called publication, which may be a list.'],
  ['replicationSet', 'is called replicationSets, which may be one name.'],
]);

/**
 * Checks the options in the order of their documentation and fills in the defaults. Pure: no I/O.
 *
 * @throws {ReplicantConfigError} for the first option that cannot work
 */
export function resolveOptions(options: PipelineOptions): ResolvedOptions {
  if (typeof options !== 'object' || options === null) {
    throw new ReplicantConfigError(
      'options',
      'must be an object with connection, slotName and publication.',
    );
  }
  refuseUnknown(options, KNOWN, '', ELSEWHERE);
  resolveConnection('connection', options.connection);
  const slot = slotName(options.slotName);
  const decoder = resolveDecoder(options);
  const resolved: ResolvedOptions = {
    slotName: slot,
    decoder,
    checkpointStore: checkpointStore(options.checkpointStore),
    maxInflightBytes: maxInflightBytes(options),
    maxCommandRetries: count('maxCommandRetries', options.maxCommandRetries, 5),
    batchDelivery: resolveBatchDelivery(
      options.batchDelivery,
      isGiven(options.checkpointStore),
    ),
    messages: flag('messages', options.messages, false),
    streaming: resolveStreaming(options.streaming, maxInflightBytes(options)),
    sinkRetry: resolveSinkRetry(options.sinkRetry),
    failover: flag('failover', options.failover, false),
    leaderElection: flag('leaderElection', options.leaderElection, false),
    goForwardOnly: flag('goForwardOnly', options.goForwardOnly, false),
    snapshot: snapshot(options),
    types: types(options.types),
    readPacing: flag('readPacing', options.readPacing, true),
    onHalt: oneOf('onHalt', options.onHalt, ['stay', 'exit']),
    startup: oneOf('startup', options.startup, ['background', 'wait']),
    autoStart: flag('autoStart', options.autoStart, true),
    drainTimeout: milliseconds('drainTimeout', options.drainTimeout, 10_000),
    health: resolveHealth(options.health),
    around: around(options.around),
  };
  const { messages, streaming, failover } = resolved;
  requireCapabilities(decoder, {
    messages,
    streaming: streaming !== null,
    failover,
  });
  return resolved;
}

function maxInflightBytes({ maxInflightBytes: value }: PipelineOptions) {
  return positiveInteger('maxInflightBytes', value, 16 * 1024 * 1024);
}

function snapshot({
  snapshot: value,
  goForwardOnly,
}: PipelineOptions): ResolvedSnapshotOptions | null {
  const resolved = resolveSnapshot(value);
  if (resolved !== null && goForwardOnly === true)
    throw new ReplicantConfigError(
      'snapshot',
      'copies the rows that exist already, and goForwardOnly leaves them out: remove one of the two.',
    );
  return resolved;
}

function checkpointStore(
  value: CheckpointStoreOptions | null | undefined,
): ResolvedCheckpointStoreOptions | null {
  const resolved = resolveCheckpointStore(value);
  if (isGiven(value))
    resolveConnection('checkpointStore.connection', value.connection);
  return resolved;
}

/**
 * Checks an option that holds a connection as far as that goes without connecting.
 *
 * @throws {ReplicantConfigError} when it is missing, or a text that is no connection string
 */
export function resolveConnection(
  option: string,
  value: ConnectionOption | undefined,
): ConnectionOption {
  if (typeof value === 'function') return value;
  if (typeof value === 'string' && isConnectionString(value)) return value;
  if (
    typeof value === 'object' &&
    value !== null &&
    Object.keys(value).length > 0
  )
    return value;
  throw new ReplicantConfigError(
    option,
    'must be a connection string, pg client settings, or a function that returns one of them.',
  );
}

/** Whether `pg` can read it. A client that is made does nothing before it is told to connect. */
function isConnectionString(text: string): boolean {
  if (text === '') return false;
  try {
    Reflect.construct(pg.Client, [{ connectionString: text }]);
    return true;
  } catch {
    return false;
  }
}

function slotName(value: unknown): string {
  if (typeof value === 'string' && isSlotName(value)) return value;
  throw new ReplicantConfigError(
    'slotName',
    'must be 1 to 63 characters of a-z, 0-9 and _.',
  );
}

function types(value: TypesOption | undefined): TypesOption {
  if (value === undefined) return 'exact';
  if (value === 'exact' || value === 'pg' || value === 'text') return value;
  if (
    typeof value === 'object' &&
    value !== null &&
    typeof value.getTypeParser === 'function'
  )
    return value;
  throw new ReplicantConfigError(
    'types',
    "must be 'exact', 'pg', 'text', or an object with getTypeParser().",
  );
}

function around(value: unknown): AroundDelivery | null {
  if (!isGiven(value)) return null;
  if (isAround(value)) return value;
  throw new ReplicantConfigError(
    'around',
    'must be a function (delivery, next) => Promise<void>.',
  );
}

/** `null` switches an option off, as leaving it out does. */
function isGiven<T>(value: T | null | undefined): value is T {
  return value !== undefined && value !== null;
}

function isAround(value: unknown): value is AroundDelivery {
  return typeof value === 'function';
}
