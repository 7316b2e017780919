import type { ChildSettings } from '../child-process.js';
import type { LargeLoad } from './large-loads.js';

const MIB = 1024 * 1024;

/** A way to read transactions that are large. */
export interface LargeReader {
  readonly name: 'plain' | 'streamed' | 'spilled';
  /** How it reads, for people. */
  readonly options: string;
  readonly settings: ChildSettings;
  /** The server sends it transactions while they run. */
  readonly streams: boolean;
  /** It keeps all of a running transaction in memory. */
  readonly inMemory: boolean;
}

/** What the payload of a transaction may hold in memory. */
const IN_MEMORY_MIB = 512;
/** As many rows as that is enough for. */
const MOST_IN_MEMORY = 2_000_000;

/** Every reader, in the order in which they take turns. */
export const LARGE_READERS: readonly LargeReader[] = [
  {
    name: 'plain',
    options:
      'default options: the server sends a transaction once it is committed',
    settings: { STREAMING: 'off' },
    streams: false,
    inMemory: false,
  },
  {
    name: 'streamed',
    options: `streaming {}, maxInflightBytes ${IN_MEMORY_MIB} MiB, since all of the transaction waits in memory`,
    settings: {
      STREAMING: 'on',
      MAX_INFLIGHT_BYTES: String(IN_MEMORY_MIB * MIB),
    },
    streams: true,
    inMemory: true,
  },
  {
    name: 'spilled',
    options: 'streaming { spill }, maxInflightBytes as by default, 16 MiB',
    settings: { STREAMING: 'on' },
    streams: true,
    inMemory: false,
  },
];

/** Whether it can read a load at all. */
export function fits({ inMemory }: LargeReader, { rows }: LargeLoad): boolean {
  return !inMemory || rows <= MOST_IN_MEMORY;
}
