import type { SnapshotMode } from '../../lib/index.js';
import type { DecoderName } from '../../lib/engine/options/decoder-options.js';

/** Where a process of ours is killed, other than at a random moment. Mostly the sink stands there and waits. */
export type Point =
  /** Half of the changes of a transaction are written, in a database transaction that is open. */
  | 'in a transaction'
  /** The same in a transaction of which most is still to come from the server. */
  | 'while it arrives'
  /** What was handed over is committed, and the promise of the handler has not resolved. */
  | 'before the ack'
  /** The promise of the handler has resolved, and `around` holds what follows: the store does not know yet. */
  | 'before the store'
  /** Transactions have arrived and wait for the batch to be closed; nothing of it is written. */
  | 'in an open batch'
  /** With a checkpoint of the sink: half of a batch is written. With a store: it has some transactions, and the store none. */
  | 'in a batch'
  /** A message is written, in a database transaction that is open. */
  | 'in a message'
  /** A message is committed, and the promise of the handler has not resolved. */
  | 'before the ack of a message'
  /** Half of the rows of a chunk are written, in a database transaction that is open. */
  | 'in a chunk'
  /** The rows of a chunk are committed, with the progress if it is one of the sink, and the promise of the handler has not resolved. */
  | 'before the ack of a chunk'
  /** The promise of the handler has resolved, and `around` holds what follows: the store does not know of the chunk yet. */
  | 'before the store of a chunk'
  /** As `in a chunk`, of an initial snapshot: the slot is there, and nothing is stored behind it. */
  | 'in a page'
  /** A page is committed, and the promise of the handler has not resolved. */
  | 'before the ack of a page'
  /** A part of a transaction that still runs is there, on disk where the mode has one. The sink has nothing to do with it. */
  | 'while it is held'
  /** Half of a block of a running transaction is written to its file. */
  | 'while it is written to disk'
  /** All that there is was confirmed to the server. */
  | 'idle'
  /** The application was asked to end, and waits for its sink, which stands as `in a transaction`. */
  | 'while draining';

/** What a mode of delivery promises, and where it is killed. */
export interface Mode {
  readonly points: readonly [Point, ...Point[]];
  /** Those among them at which something was done for good that has to come again. */
  readonly repeats: readonly Point[];
  /** How many transactions may be applied again after a crash. */
  readonly mayRepeat: number;
  /** Whether messages are asked for, which then must not be lost either. */
  readonly messages: boolean;
  /** How the rows that exist already are copied; `null` when there are none. */
  readonly snapshot: SnapshotMode | null;
  /** Among the points those after which a chunk has to come again. */
  readonly chunkRepeats: readonly Point[];
  /** How many chunks may hold rows, after a crash, that were copied before. */
  readonly mayCopyAgain: number;
  /** Where large transactions are kept while they run; `null` when the server keeps them. */
  readonly streaming: 'in memory' | 'on disk' | null;
  readonly decoder: DecoderName;
}

/** Of the modes with batches. */
export const MAX_TRANSACTIONS = 10;

/** Of the mode `incremental`. */
export const CHUNK_ROWS = 100;

/** Of the mode `spilled`: less than a transaction that stays open has. */
export const SPILLED_ABOVE = 128 * 1024;

const NO_SNAPSHOT = {
  snapshot: null,
  chunkRepeats: [],
  mayCopyAgain: 0,
} as const;
const PLAIN = { streaming: null, decoder: 'pgoutput' } as const;
const ONCE = {
  repeats: [],
  mayRepeat: 0,
  messages: false,
  ...NO_SNAPSHOT,
  ...PLAIN,
} as const;

const TRANSACTION = {
  points: [
    'in a transaction',
    'while it arrives',
    'before the ack',
    'idle',
    'while draining',
  ],
  ...ONCE,
} as const;
const MESSAGES = {
  points: [
    'in a transaction',
    'while it arrives',
    'before the ack',
    'in a message',
    'before the ack of a message',
    'idle',
    'while draining',
  ],
  repeats: ['before the ack of a message'],
  mayRepeat: 0,
  messages: true,
  ...NO_SNAPSHOT,
  ...PLAIN,
} as const;

/** Here a later mode is added, and its options in `programs/mode-programs.ts`. */
export const MODES = {
  transaction: TRANSACTION,
  batch: {
    points: [
      'in a transaction',
      'while it arrives',
      'in an open batch',
      'in a batch',
      'before the ack',
      'idle',
      'while draining',
    ],
    ...ONCE,
  },
  lib: {
    points: [
      'in a transaction',
      'while it arrives',
      'before the ack',
      'before the store',
      'idle',
      'while draining',
    ],
    repeats: ['before the ack', 'before the store'],
    mayRepeat: 1,
    messages: false,
    ...NO_SNAPSHOT,
    ...PLAIN,
  },
  'lib-batch': {
    points: [
      'in a transaction',
      'while it arrives',
      'in a batch',
      'before the ack',
      'before the store',
      'idle',
      'while draining',
    ],
    repeats: ['before the ack', 'in a batch', 'before the store'],
    mayRepeat: MAX_TRANSACTIONS,
    messages: false,
    ...NO_SNAPSHOT,
    ...PLAIN,
  },
  messages: MESSAGES,
  incremental: {
    points: [
      'in a chunk',
      'before the ack of a chunk',
      'in a transaction',
      'while it arrives',
      'before the ack',
      'idle',
      'while draining',
    ],
    ...ONCE,
    snapshot: 'incremental',
  },
  'incremental-lib': {
    points: [
      'in a chunk',
      'before the ack of a chunk',
      'before the store of a chunk',
      'in a transaction',
      'while it arrives',
      'before the ack',
      'before the store',
      'idle',
      'while draining',
    ],
    repeats: ['before the ack', 'before the store'],
    mayRepeat: 1,
    messages: false,
    snapshot: 'incremental',
    chunkRepeats: ['before the ack of a chunk', 'before the store of a chunk'],
    // Read anew, after rows were inserted among its own, a chunk ends earlier, and the next one has the rest.
    mayCopyAgain: 2,
    ...PLAIN,
  },
  initial: {
    points: [
      'in a page',
      'before the ack of a page',
      'in a transaction',
      'while it arrives',
      'before the ack',
      'idle',
      'while draining',
    ],
    ...ONCE,
    snapshot: 'initial',
  },
  streamed: {
    points: [
      'while it is held',
      'in a transaction',
      'while it arrives',
      'before the ack',
      'idle',
      'while draining',
    ],
    ...ONCE,
    messages: true,
    streaming: 'in memory',
  },
  spilled: {
    points: [
      'while it is held',
      'while it is written to disk',
      'in a transaction',
      'while it arrives',
      'before the ack',
      'idle',
      'while draining',
    ],
    ...ONCE,
    messages: true,
    streaming: 'on disk',
  },
  wal2json: { ...MESSAGES, decoder: 'wal2json' },
  pglogical: { ...TRANSACTION, decoder: 'pglogical' },
} as const satisfies Record<string, Mode>;

export type ModeName = keyof typeof MODES;

export const MODE_NAMES = Object.keys(MODES).filter(isModeName);

export function isModeName(name: string): name is ModeName {
  return Object.hasOwn(MODES, name);
}

/** Faults that may be planted into the sink, each of which a run has to find. */
export const PLANTS = ['early-ack', 'late-advance'] as const;

export type Plant = (typeof PLANTS)[number];
