import type { RowChecksum } from '../checksum.js';
import {
  NodeChild,
  numbersIn,
  programPath,
  sourceSettings,
} from '../child-process.js';
import type { Cores } from '../cores.js';
import type { Figures } from '../report.js';
import { FolderWatch } from './folder-watch.js';
import type { LargeLoad } from './large-loads.js';
import type { LargeReader } from './large-readers.js';
import type { Decoded, LargeSource, Written } from './large-source.js';

const SLOT = 'bench_large';
const LONGEST_RUN_MS = 30 * 60_000;
const MB = 1024 * 1024;

/** What a reader that has missed nothing has seen. */
export type Expected = Pick<RowChecksum, 'rows' | 'sum'>;

/** What a reader is tried with. */
export interface LargeTask {
  readonly load: LargeLoad;
  readonly source: LargeSource;
  readonly cores: Cores | null;
  /** Where it may keep files. */
  readonly spillFolder: string;
}

/** Writes a transaction while a reader is connected, and waits until it has read it. */
export async function readOnce(
  task: LargeTask,
  reader: LargeReader,
  expected: () => Promise<Expected>,
): Promise<Figures> {
  const { load, source, spillFolder } = task;
  await source.prepare(SLOT);
  const child = startReader(task, reader);
  const timer = setTimeout(() => child.kill(), LONGEST_RUN_MS);
  const folder = new FolderWatch(spillFolder);
  try {
    await child.started();
    const written = await source.write(load.rows);
    const told = numbersIn(await child.result(), [
      'first',
      'last',
      'rows',
      'checksum',
      'clientCpuSeconds',
      'peakRssMb',
      'loopDelayMs',
      'loopBlockedMs',
    ]);
    await source.readerToLeave();
    const decoded = await source.decoded(SLOT);
    check(told, await expected());
    if (decoded.streamedBytes > 0 !== reader.streams)
      throw new Error(
        `The server sent ${decoded.streamedBytes} bytes of the running transaction.`,
      );
    return figures(load, written, told, decoded, await folder.end());
  } finally {
    clearTimeout(timer);
    child.kill();
    await folder.end();
    await source.tidy();
  }
}

function startReader(
  { load, source, cores, spillFolder }: LargeTask,
  { streams, inMemory, settings }: LargeReader,
): NodeChild {
  return new NodeChild(
    programPath('large-application.js'),
    {
      ...sourceSettings(source, { transport: 'TCP' }, SLOT, ''),
      ROWS: String(load.rows),
      ...(streams && !inMemory ? { SPILL_DIR: spillFolder } : {}),
      ...settings,
    },
    cores,
  );
}

/** What the program tells. */
type Told = Readonly<
  Record<
    | 'first'
    | 'last'
    | 'clientCpuSeconds'
    | 'peakRssMb'
    | 'loopDelayMs'
    | 'loopBlockedMs',
    number | null
  >
>;

function figures(
  { rows }: LargeLoad,
  { began, committed }: Written,
  { first, last, ...told }: Told,
  { spilledBytes }: Decoded,
  diskBytes: number,
): Figures {
  if (first === null || last === null)
    throw new Error('A reader has not seen the first and the last change.');
  return {
    writeSeconds: (committed - began) / 1e6,
    firstChangeMs: (first - committed) / 1e3,
    lastChangeMs: (last - committed) / 1e3,
    rowsPerSecond: rows / ((last - began) / 1e6),
    sinkRowsPerSecond: rows / ((last - first) / 1e6),
    clientCpuSeconds: told.clientCpuSeconds,
    peakRssMb: told.peakRssMb,
    diskMb: diskBytes / MB,
    serverDiskMb: spilledBytes / MB,
    loopDelayMs: told.loopDelayMs,
    loopBlockedMs: told.loopBlockedMs,
  };
}

/** A reader that has missed something was not faster. */
function check(
  told: Readonly<Record<'rows' | 'checksum', number | null>>,
  expected: Expected,
): void {
  if (told.rows !== expected.rows || told.checksum !== expected.sum)
    throw new Error(
      `Not what is in the source: ${told.rows} rows instead of ${expected.rows}, or others.`,
    );
}
