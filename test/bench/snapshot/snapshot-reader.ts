import type { Cores } from '../cores.js';
import type { PopulatedSource } from './populated-source.js';
import type { SnapshotLoad } from './snapshot-loads.js';

/** One reading of all rows. */
export interface SnapshotTask {
  readonly load: SnapshotLoad;
  readonly source: PopulatedSource;
  readonly cores: Cores | null;
}

/** What a reader tells of a run. `null` is what does not apply to it or cannot be told. */
export interface SnapshotResult {
  readonly wallSeconds: number;
  readonly clientCpuSeconds: number | null;
  readonly peakRssMb: number | null;
  /** Of the same process before it began to read. */
  readonly idleRssMb: number | null;
  readonly rows: number | null;
}

/** Something that reads a whole table. */
export interface SnapshotReader {
  readonly name: string;
  /** How it reads, for people. */
  readonly options: string;
  /** What it holds at a time has a bound in bytes. */
  readonly bounded: boolean;
  /** Makes it ready, once. @returns why it cannot run, or `null` */
  prepare(): string | null;
  read(task: SnapshotTask): Promise<SnapshotResult>;
}
