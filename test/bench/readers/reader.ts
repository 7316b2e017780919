import type { Cores } from '../cores.js';
import type { Load } from '../loads.js';
import type { Expected, Source } from '../source.js';

/** One reading of a slot, from its begin to the last commit. */
export interface ReadTask {
  readonly load: Load;
  readonly source: Source;
  readonly slot: string;
  readonly expected: Expected;
  /** PEM of the server; used under TLS. */
  readonly certificate: string;
  readonly cores: Cores | null;
}

/** What a reader tells of a run. `null` is what does not apply to it or cannot be told. */
export interface ReadResult {
  /** From the moment at which the server begins to stream until the last commit was seen. */
  readonly wallSeconds: number;
  readonly clientCpuSeconds: number | null;
  readonly peakRssMb: number | null;
  /** Only of a reader that is in the server; of the others it is measured from outside. */
  readonly serverCpuSeconds?: number | null;
  readonly rows: number | null;
  readonly messages: number | null;
  readonly checksum: number | null;
}

/** Something that reads a slot. */
export interface Reader {
  readonly name: string;
  /** How it reads, for people. */
  readonly options: string;
  readonly hasSink: boolean;
  /** Output plugin of the slot that it is given. @default 'pgoutput' */
  readonly plugin?: string;
  /** Makes it ready, once. @returns why it cannot run, or `null` */
  prepare(): Promise<string | null> | string | null;
  read(task: ReadTask): Promise<ReadResult>;
}
