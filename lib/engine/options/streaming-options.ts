import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { ReplicantConfigError } from './config-error.js';
import {
  flag,
  nested,
  positiveInteger,
  refuseUnknown,
} from './option-checks.js';

const STREAMING = new Set(['maxConcurrentTxns', 'spill']);
const SPILL = new Set(['dir', 'maxSpillBytes', 'encrypt']);

/** How transactions that do not fit into memory wait on disk for their commit. */
export interface SpillOptions {
  /**
   * The folder below which each slot has one. It is made when it is missing. It should be on a disk, and the operating system's user of
   * the process alone needs it. A relative path is one from the working directory of the process.
   *
   * @default join(os.tmpdir(), 'nestjs_replicant_spill')
   */
  dir?: string;
  /**
   * Bytes on disk of all transactions together, beyond which the pipeline halts with `spill_exhausted`.
   *
   * @default 16 times maxInflightBytes
   */
  maxSpillBytes?: number;
  /**
   * Whether the files are encrypted, by AES-256-GCM with a key that the process makes and never stores.
   *
   * @default false
   */
  encrypt?: boolean;
}

/**
 * Receives large transactions while they are still running, so that they are here when they commit. They are delivered after their commit,
 * as all others are.
 *
 * @see {@link https://www.postgresql.org/docs/current/logicaldecoding-streaming.html | Streaming of Large Transactions for Logical Decoding}
 */
export interface StreamingOptions {
  /**
   * Running transactions that the server may send at a time; with one more the pipeline halts with `too_many_streams`.
   *
   * @default 64
   */
  maxConcurrentTxns?: number;
  /**
   * Writes the largest of them to disk when they hold more than `maxInflightBytes`; `{}` is on with its defaults. Without it the pipeline
   * then halts with `transaction_too_large`.
   */
  spill?: SpillOptions | null;
}

/** {@link SpillOptions} after validation. */
export type ResolvedSpillOptions = Readonly<Required<SpillOptions>>;

/** {@link StreamingOptions} after validation. */
export interface ResolvedStreamingOptions {
  readonly maxConcurrentTxns: number;
  readonly spill: ResolvedSpillOptions | null;
}

/**
 * Checks the option `streaming`.
 *
 * @throws {ReplicantConfigError} for the first setting that cannot work, named such as `streaming.spill.dir`
 */
export function resolveStreaming(
  value: StreamingOptions | null | undefined,
  maxInflightBytes: number,
): ResolvedStreamingOptions | null {
  if (value === undefined || value === null) return null;
  const options = nested('streaming', value);
  refuseUnknown(options, STREAMING, 'streaming.');
  return {
    maxConcurrentTxns: positiveInteger(
      'streaming.maxConcurrentTxns',
      options.maxConcurrentTxns,
      64,
    ),
    spill: resolveSpill(options.spill, maxInflightBytes),
  };
}

function resolveSpill(
  value: SpillOptions | null | undefined,
  maxInflightBytes: number,
): ResolvedSpillOptions | null {
  if (value === undefined || value === null) return null;
  const options = nested('streaming.spill', value);
  refuseUnknown(options, SPILL, 'streaming.spill.');
  return {
    dir: folder('streaming.spill.dir', options.dir),
    maxSpillBytes: positiveInteger(
      'streaming.spill.maxSpillBytes',
      options.maxSpillBytes,
      16 * maxInflightBytes,
    ),
    encrypt: flag('streaming.spill.encrypt', options.encrypt, false),
  };
}

function folder(option: string, value: unknown): string {
  if (value === undefined) return join(tmpdir(), 'nestjs_replicant_spill');
  if (typeof value === 'string' && value !== '' && !value.includes('\0'))
    return resolve(value);
  throw new ReplicantConfigError(option, 'must be the path of a folder.');
}
