import {
  fraction,
  limit,
  milliseconds,
  nested,
  oneOf,
  refuseUnknown,
} from './option-checks.js';

/** What counts as healthy. A limit that is exceeded makes readiness `degraded`, which answers HTTP 200. */
export interface HealthOptions {
  /**
   * What a pipeline that stands still until somebody acts (halted, slot lost or missing) makes of readiness: `strict` is down, `lenient`
   * is degraded, for a process that serves requests too and should go on serving them.
   *
   * @default 'strict'
   */
  readiness?: 'strict' | 'lenient';
  /**
   * Liveness of a halted pipeline. `down` has the orchestrator restart the process, which then meets the same transaction again.
   *
   * @default 'up'
   */
  livenessOnHalt?: 'up' | 'down';
  /**
   * Milliseconds for which a lost connection is taken for a fail-over, and readiness is degraded; then it is down.
   *
   * @default 60000
   */
  reconnectGrace?: number;
  /**
   * Bytes of WAL that are not durable in the sink yet.
   *
   * @default 1073741824
   */
  maxLagBytes?: number | false;
  /**
   * Milliseconds since the commit of the transaction that the sink works on or failed at.
   *
   * @default 300000
   */
  maxLagMilliseconds?: number | false;
  /**
   * Bytes of WAL that the server keeps for the slot, whatever holds it.
   *
   * @default 10737418240
   */
  maxRetainedBytes?: number | false;
  /**
   * Part of the server's `max_slot_wal_keep_size` that is left before the slot may be lost, at least. Without effect on a server
   * that sets no such limit.
   *
   * @default 0.5
   */
  minSafeWalFraction?: number | false;
  /**
   * Milliseconds without progress after which the running handler counts as hung and liveness is down. Reading changes of a
   * transaction that is handed over while it arrives is progress, and so is waiting for the server.
   *
   * @default 600000
   */
  stalledAfter?: number | false;
  /**
   * Milliseconds for which what the server said of the slot is not asked again.
   *
   * @default 10000
   */
  cacheFor?: number;
  /**
   * Milliseconds after which a question about the slot is given up. No probe waits for it.
   *
   * @default 5000
   */
  timeout?: number;
}

/** {@link HealthOptions} after validation; `null` where a limit is switched off. */
export interface ResolvedHealthOptions {
  readonly readiness: 'strict' | 'lenient';
  readonly livenessOnHalt: 'up' | 'down';
  readonly reconnectGrace: number;
  readonly maxLagBytes: number | null;
  readonly maxLagMilliseconds: number | null;
  readonly maxRetainedBytes: number | null;
  readonly minSafeWalFraction: number | null;
  readonly stalledAfter: number | null;
  readonly cacheFor: number;
  readonly timeout: number;
}

const KNOWN: ReadonlySet<string> = new Set([
  'readiness',
  'livenessOnHalt',
  'reconnectGrace',
  'maxLagBytes',
  'maxLagMilliseconds',
  'maxRetainedBytes',
  'minSafeWalFraction',
  'stalledAfter',
  'cacheFor',
  'timeout',
]);

/**
 * Checks the option `health` in the order of its documentation and fills in the defaults.
 *
 * @throws {ReplicantConfigError} for the first that cannot work, named such as `health.cacheFor`
 */
export function resolveHealth(
  value: HealthOptions | undefined,
): ResolvedHealthOptions {
  const options = nested('health', value === undefined ? {} : value);
  refuseUnknown(options, KNOWN, 'health.');
  return {
    readiness: oneOf('health.readiness', options.readiness, [
      'strict',
      'lenient',
    ]),
    livenessOnHalt: oneOf('health.livenessOnHalt', options.livenessOnHalt, [
      'up',
      'down',
    ]),
    reconnectGrace: milliseconds(
      'health.reconnectGrace',
      options.reconnectGrace,
      60_000,
    ),
    maxLagBytes: limit('health.maxLagBytes', options.maxLagBytes, 1024 ** 3),
    maxLagMilliseconds: limit(
      'health.maxLagMilliseconds',
      options.maxLagMilliseconds,
      300_000,
    ),
    maxRetainedBytes: limit(
      'health.maxRetainedBytes',
      options.maxRetainedBytes,
      10 * 1024 ** 3,
    ),
    minSafeWalFraction: fraction(
      'health.minSafeWalFraction',
      options.minSafeWalFraction,
      0.5,
    ),
    stalledAfter: limit('health.stalledAfter', options.stalledAfter, 600_000),
    cacheFor: milliseconds('health.cacheFor', options.cacheFor, 10_000),
    timeout: milliseconds('health.timeout', options.timeout, 5_000),
  };
}
