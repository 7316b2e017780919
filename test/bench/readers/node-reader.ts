import {
  type ChildSettings,
  NodeChild,
  numbersIn,
  sourceSettings,
} from '../child-process.js';
import type { Reader, ReadResult, ReadTask } from './reader.js';

const LONGEST_RUN_MS = 10 * 60_000;

/** What makes a reader of a program. */
export interface NodeProgram {
  readonly name: string;
  readonly options: string;
  readonly hasSink: boolean;
  /** Path of the program. */
  readonly script: string;
  /** Output plugin of its slot. @default 'pgoutput' */
  readonly plugin?: string;
  readonly settings?: ChildSettings;
  /** @returns why it cannot run, or `null` */
  readonly prepare?: () => string | null;
}

/** Reads with a Node.js program in a process of its own, which measures itself. */
export class NodeReader implements Reader {
  constructor(private readonly program: NodeProgram) {}

  get name(): string {
    return this.program.name;
  }

  get options(): string {
    return this.program.options;
  }

  get hasSink(): boolean {
    return this.program.hasSink;
  }

  get plugin(): string | undefined {
    return this.program.plugin;
  }

  prepare(): string | null {
    return this.program.prepare?.() ?? null;
  }

  async read(task: ReadTask): Promise<ReadResult> {
    const { source, load, slot, certificate, cores, expected } = task;
    const child = new NodeChild(
      this.program.script,
      {
        ...sourceSettings(source, load, slot, certificate),
        TRANSACTIONS: String(expected.transactions),
        SLOW_SINK: load.slowSink ? 'on' : 'off',
        ...this.program.settings,
      },
      cores,
    );
    const timer = setTimeout(() => child.kill(), LONGEST_RUN_MS);
    try {
      const { wallSeconds, ...told } = numbersIn(await child.result(), [
        'wallSeconds',
        'clientCpuSeconds',
        'peakRssMb',
        'rows',
        'messages',
        'checksum',
      ]);
      if (wallSeconds === null) throw new Error('A reader has no clock.');
      return { wallSeconds, ...told };
    } finally {
      clearTimeout(timer);
    }
  }
}
