import { ReplicantConfigError } from './config-error.js';
import { positiveInteger, refuseUnknown } from './option-checks.js';

const INITIAL = new Set(['mode', 'parallelTables']);
const INCREMENTAL = new Set(['mode', 'chunkRows', 'maxPendingChunks']);
/** What the mode 'initial' has not, which is the mode where none is named. */
const OF_INCREMENTAL = new Map(
  ['chunkRows', 'maxPendingChunks'].map((name) => [
    name,
    `belongs to the mode 'incremental': write snapshot: { mode: 'incremental', ${name}: … }, or leave it out.`,
  ]),
);
const OF_INITIAL = new Map([
  [
    'parallelTables',
    "belongs to the mode 'initial', and the mode 'incremental' reads one table after the other: leave it out, or write snapshot: { mode: 'initial', parallelTables: … }.",
  ],
]);

/** Copies the rows that exist already before anything is streamed. */
export interface InitialSnapshotOptions {
  /** @default 'initial' */
  mode?: 'initial';
  /**
   * Tables that are read at a time, each on a connection of its own.
   *
   * @default 2
   */
  parallelTables?: number;
}

/** Copies the rows that exist already in chunks beside the stream, and goes on after the last chunk when it was interrupted. */
export interface IncrementalSnapshotOptions {
  mode: 'incremental';
  /**
   * Rows of a chunk. It ends earlier when it holds 4 MiB.
   *
   * @default 1000
   */
  chunkRows?: number;
  /**
   * Chunks that were read and wait for the stream or the sink.
   *
   * @default 4
   */
  maxPendingChunks?: number;
}

/** How the rows that exist already are copied; `true` is the mode `initial`. */
export type SnapshotOption =
  boolean | InitialSnapshotOptions | IncrementalSnapshotOptions;

/** {@link SnapshotOption} after validation. */
export type ResolvedSnapshotOptions =
  | Readonly<Required<InitialSnapshotOptions>>
  | Readonly<Required<IncrementalSnapshotOptions>>;

/** How tables are copied beside the stream where the option says nothing of it. */
export const DEFAULT_CHUNKS = { chunkRows: 1_000, maxPendingChunks: 4 };

/**
 * Checks the option `snapshot` and fills in the defaults.
 *
 * @throws {ReplicantConfigError} for the first setting that cannot work
 */
export function resolveSnapshot(
  value: SnapshotOption | null | undefined,
): ResolvedSnapshotOptions | null {
  if (value === undefined || value === null || value === false) return null;
  if (value === true) return resolveSnapshot({});
  if (typeof value !== 'object' || Array.isArray(value))
    throw new ReplicantConfigError(
      'snapshot',
      "must be true, false or an object, such as { mode: 'incremental' }.",
    );
  if (value.mode === 'incremental') {
    refuseUnknown(value, INCREMENTAL, 'snapshot.', OF_INITIAL);
    return {
      mode: 'incremental',
      chunkRows: positiveInteger(
        'snapshot.chunkRows',
        value.chunkRows,
        DEFAULT_CHUNKS.chunkRows,
      ),
      maxPendingChunks: positiveInteger(
        'snapshot.maxPendingChunks',
        value.maxPendingChunks,
        DEFAULT_CHUNKS.maxPendingChunks,
      ),
    };
  }
  if (value.mode !== undefined && value.mode !== 'initial')
    throw new ReplicantConfigError(
      'snapshot.mode',
      "must be 'initial' or 'incremental'.",
    );
  refuseUnknown(value, INITIAL, 'snapshot.', OF_INCREMENTAL);
  return {
    mode: 'initial',
    parallelTables: positiveInteger(
      'snapshot.parallelTables',
      value.parallelTables,
      2,
    ),
  };
}
