import {
  type ChildSettings,
  NodeChild,
  numbersIn,
  programPath,
} from '../child-process.js';
import type {
  SnapshotReader,
  SnapshotResult,
  SnapshotTask,
} from './snapshot-reader.js';

const LONGEST_RUN_MS = 10 * 60_000;
const SLOT = 'bench_snapshot';

/** What makes a reader of a program. */
export interface SnapshotProgram {
  readonly name: string;
  readonly options: string;
  readonly bounded: boolean;
  /** File name of the program in `programs`. */
  readonly script: string;
  readonly settings?: ChildSettings;
}

/** Reads with a Node.js program in a process of its own, which measures itself. */
export class NodeSnapshotReader implements SnapshotReader {
  constructor(private readonly program: SnapshotProgram) {}

  get name(): string {
    return this.program.name;
  }

  get options(): string {
    return this.program.options;
  }

  get bounded(): boolean {
    return this.program.bounded;
  }

  prepare(): null {
    return null;
  }

  async read({ source, load, cores }: SnapshotTask): Promise<SnapshotResult> {
    const { script, settings } = this.program;
    const child = new NodeChild(
      programPath(script),
      {
        SOURCE_URL: source.database.url,
        CERTIFICATE: '',
        SLOT,
        ROWS: String(load.rows),
        ...settings,
      },
      cores,
    );
    const timer = setTimeout(() => child.kill(), LONGEST_RUN_MS);
    try {
      const { wallSeconds, ...told } = numbersIn(await child.result(), [
        'wallSeconds',
        'clientCpuSeconds',
        'peakRssMb',
        'idleRssMb',
        'rows',
      ]);
      if (wallSeconds === null) throw new Error('A reader has no clock.');
      return { wallSeconds, ...told };
    } finally {
      clearTimeout(timer);
    }
  }
}
