import type { ConnectionFault } from '../model/connection-fault.js';
import type { Lsn } from '../model/lsn.js';
import type { Message } from '../model/message.js';
import type { AnySnapshotRow, SnapshotContext } from '../model/snapshot.js';
import type { Relation } from '../model/relation.js';
import type { Transaction } from '../model/transaction.js';

/** A transaction for the sink. */
export interface TransactionWork {
  readonly kind: 'transaction';
  readonly transaction: Transaction;
  /** Number of its changes. */
  readonly changes: number;
  /** Payload bytes that it holds. */
  readonly bytes: number;
  readonly end: Lsn;
  /** New shapes of tables in it. */
  readonly shapes: readonly Relation[];
}

/** A transaction that is read while it arrives. */
export interface Arrival {
  /** Payload bytes that it holds now. */
  readonly bytes: number;
  /** Number of changes that have arrived. */
  readonly count: number;
  /** When its reader last asked, by `performance.now()`: now while it waits for what the server has not sent. */
  readonly askedAt: number;
  /** Its end has arrived. */
  readonly complete: boolean;
  /** Resolves with its end; rejects when that will not arrive. */
  readonly ended: Promise<Lsn>;
  /** Why its end will not arrive; `null` as long as it may. */
  readonly fault: ConnectionFault | null;
  /** What the handler was told instead of the rest; `null` when it was not told so. */
  readonly broken: ConnectionFault | null;
  /** The handler has settled: what it did not read is not kept. */
  settle(): void;
}

export interface ArrivingWork {
  readonly kind: 'arriving';
  readonly transaction: Transaction;
  readonly arrival: Arrival;
  /** New shapes of tables in it; more follow until its end. */
  readonly shapes: readonly Relation[];
}

/** A message outside any transaction. */
export interface MessageWork {
  readonly kind: 'message';
  readonly message: Message;
  /** Payload bytes that it holds. */
  readonly bytes: number;
}

/** A call of the sink with rows of a snapshot. */
export interface SnapshotCall {
  readonly rows: readonly AnySnapshotRow[];
  readonly context: SnapshotContext;
}

/** Rows of a snapshot. They take part in the order and move no position. */
export interface ChunkWork {
  readonly kind: 'chunk';
  /** Payload bytes that it holds of what the stream has brought. Its rows do not count: they are bounded by who reads them. */
  readonly bytes: number;
  /**
   * Called once, when its turn has come and everything before was done: rows take several times the memory of their text, and the progress is
   * the longer the more tables there are.
   */
  begin(): SnapshotCall;
  /** The sink has taken them, and their progress is stored. */
  taken(): void;
}

/** Nothing to do for the sink: applied before, or without any change. It keeps its place in the order. */
export interface PassWork {
  readonly kind: 'pass';
  readonly end: Lsn;
  /** There never was anything to apply. */
  readonly empty: boolean;
}

/** The connection has to end when everything before is durable. */
export interface EndWork {
  readonly kind: 'end';
  readonly fault: ConnectionFault;
}

/** What is done for the sink by itself, and durable then. */
export type SingleWork = TransactionWork | ArrivingWork | MessageWork;

/** What comes out of assembly, in commit order. */
export type StreamedWork = SingleWork | PassWork | EndWork;

/** Whatever is done for the sink, in its order. */
export type Work = StreamedWork | ChunkWork;

/** What a transaction or a message costs beside its payload, also one that is passed: many tiny ones must not outgrow the limit in bytes. */
const ALLOWANCE_BYTES = 512;

/**
 * What a work counts from its arrival until it is durable. One that is read while it arrives counts what it holds, and
 * nothing else: while it holds nothing, its reader waits for the socket.
 */
export function bytesHeld(work: Work): number {
  switch (work.kind) {
    case 'transaction':
    case 'message':
      return work.bytes + ALLOWANCE_BYTES;
    case 'pass':
      return ALLOWANCE_BYTES;
    // The stream must not wait for the rows of a copy.
    case 'chunk':
      return work.bytes;
    case 'arriving':
    case 'end':
      return 0;
  }
}
