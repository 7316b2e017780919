import type { PipelineOptions } from '../../../lib/engine/options/pipeline-options.js';
import type { DatabaseConnection } from '../test-database.js';

const HELD = ['memory', 'disk', 'disk, encrypted'] as const;
const MODES = ['transaction', 'batch', 'library', 'library batch'] as const;
const TYPES = ['text', 'exact', 'pg'] as const;

/** How a pipeline holds transactions, and delivers them. */
export interface Setting {
  readonly held: (typeof HELD)[number];
  readonly mode: (typeof MODES)[number];
  readonly types: (typeof TYPES)[number];
  /** What a handler refuses is delivered again; otherwise the pipeline halts, and is started again. */
  readonly retries: boolean;
}

/** Each way to hold with each way to deliver. Which schedule is played with which one follows from its seed. */
export const SETTINGS: readonly Setting[] = HELD.flatMap((held, row) =>
  MODES.map((mode, column) => ({
    held,
    mode,
    types: TYPES[(row + column) % TYPES.length] ?? 'text',
    retries: (row + column) % 2 === 0,
  })),
);

/** Much less than a large transaction has: all but little goes to disk. */
const LITTLE_BYTES = 96 * 1024;
/** More than all transactions of a schedule have. */
const ENOUGH_BYTES = 16 * 1024 * 1024;
const DISK_BYTES = 256 * 1024 * 1024;

/** @param dir - for what is held on disk */
export function optionsOf(
  { held, mode, types, retries }: Setting,
  dir: string,
  store: DatabaseConnection,
): Partial<PipelineOptions> {
  const batch = { maxTransactions: 4, maxDelayMs: 20 };
  return {
    messages: true,
    types,
    ...(held === 'memory'
      ? { streaming: {}, maxInflightBytes: ENOUGH_BYTES }
      : {
          maxInflightBytes: LITTLE_BYTES,
          streaming: {
            spill: {
              dir,
              maxSpillBytes: DISK_BYTES,
              encrypt: held === 'disk, encrypted',
            },
          },
        }),
    ...(mode === 'batch' && { batchDelivery: batch }),
    ...(mode === 'library' && { checkpointStore: { connection: store } }),
    ...(mode === 'library batch' && {
      checkpointStore: { connection: store, batch },
    }),
    ...(retries && { sinkRetry: { maxRetries: 3, backoffMs: 10 } }),
  };
}
