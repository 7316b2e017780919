import type { BatchReason } from '../model/batch-reason.js';
import { errorClass } from '../model/error-class.js';
import type { Halt } from '../model/halt.js';
import type { Lsn } from '../model/lsn.js';
import type { SchemaChange } from '../model/schema-change.js';
import type { SnapshotMode } from '../model/snapshot.js';
import type { PipelineState } from './pipeline-state.js';

/** What a pipeline tells. No event carries a row value. */
export interface PipelineEvents {
  /** The state changed. */
  state: {
    readonly from: PipelineState;
    readonly to: PipelineState;
    readonly reason: string | null;
  };
  /** The pipeline halted. */
  halt: { readonly halt: Halt };
  /** The connection was lost or refused and is tried again. */
  reconnect: {
    readonly reason: string;
    /** Failed attempts in a row. */
    readonly attempt: number;
    readonly delayMilliseconds: number;
  };
  /**
   * The sink has applied a transaction. It is durable then, unless the library keeps the checkpoint of several at a time: those are when
   * `batch` is told.
   */
  delivered: {
    readonly commitLsn: Lsn;
    /** How many it had. */
    readonly changes: number;
    /** From the call of the handler until its promise resolved. */
    readonly durationMilliseconds: number;
  };
  /** A batch is durable: the sink has applied it, or the library has stored the checkpoint behind it. */
  batch: {
    /** How many it had. */
    readonly transactions: number;
    /** Of the last of them. */
    readonly commitLsn: Lsn;
    /** What closed it. */
    readonly reason: BatchReason;
    /** From the call of the handler, or of the store, until it was durable. */
    readonly durationMilliseconds: number;
  };
  /** The sink has taken a message that belongs to no transaction. */
  message: {
    readonly lsn: Lsn;
    /** Of its content. */
    readonly bytes: number;
  };
  /** The sink refused, or the checkpoint could not be read or written by the library; it is tried again. */
  retry: {
    readonly of: 'sink' | 'checkpoint';
    readonly reason: string;
    /** Failed attempts in a row. */
    readonly attempt: number;
    readonly maxRetries: number;
    readonly delayMilliseconds: number;
  };
  /**
   * A transaction, or a message outside transactions, was passed over as `skipTransaction()` was told, and this is stored with the
   * checkpoint, if that stores positions.
   */
  skipped: {
    readonly of: 'transaction' | 'message';
    /** Commit position of the transaction, or position of the message. */
    readonly lsn: Lsn;
  };
  /**
   * The pipeline goes on with another shape of a table: a column was added, or the sink accepted a destructive change. It is told when the
   * change is read, before the transaction that carries it is delivered; again after a restart that comes in between.
   */
  schemaChange: {
    readonly change: SchemaChange;
    /** Commit position of the transaction that is the first to carry the new shape. */
    readonly commitLsn: Lsn;
  };
  /** A part of a transaction that runs was written to disk, since there was no room for it in memory. */
  spilled: {
    readonly xid: number;
    /** Of this part. */
    readonly bytes: number;
  };
  /** A snapshot begins, or goes on after an interruption. */
  snapshotStarted: {
    readonly mode: SnapshotMode;
    readonly tables: number;
    /** Tables among them that were copied before. */
    readonly done: number;
    /** It goes on where it was interrupted, in this process or an earlier one. */
    readonly resumed: boolean;
  };
  /** A table is copied. */
  snapshotTable: {
    /** `schema.table`. */
    readonly table: string;
    /** Rows of it that the sink has taken since this process began to copy it. */
    readonly rows: number;
  };
  /** A table without a key was written to while it was copied, and is copied anew. */
  snapshotTableAgain: { readonly table: string };
  /** Everything is copied. */
  snapshotCompleted: {
    readonly mode: SnapshotMode;
    readonly tables: number;
    /** Rows that the sink has taken since this process began to copy. */
    readonly rows: number;
    /** Since this process began to copy. */
    readonly durationMilliseconds: number;
  };
  /** Something a person should look at, though nothing is lost. */
  warning: { readonly message: string };
}

/** A function that is told one kind of event. */
export type PipelineListener<K extends keyof PipelineEvents> = (
  event: PipelineEvents[K],
) => void;

/** Tells listeners of one kind of event. */
export type Tell = <K extends keyof PipelineEvents>(
  event: K,
  payload: PipelineEvents[K],
) => void;

type Listeners = { [K in keyof PipelineEvents]: Set<PipelineListener<K>> };

/** Tells listeners what happens. A listener that throws hurts nobody but itself. */
export class EventHub {
  readonly #listeners: Listeners = {
    state: new Set(),
    halt: new Set(),
    reconnect: new Set(),
    delivered: new Set(),
    batch: new Set(),
    message: new Set(),
    retry: new Set(),
    skipped: new Set(),
    schemaChange: new Set(),
    spilled: new Set(),
    snapshotStarted: new Set(),
    snapshotTable: new Set(),
    snapshotTableAgain: new Set(),
    snapshotCompleted: new Set(),
    warning: new Set(),
  };

  on<K extends keyof PipelineEvents>(
    event: K,
    listener: PipelineListener<K>,
  ): void {
    this.#listeners[event].add(listener);
  }

  off<K extends keyof PipelineEvents>(
    event: K,
    listener: PipelineListener<K>,
  ): void {
    this.#listeners[event].delete(listener);
  }

  emit<K extends keyof PipelineEvents>(
    event: K,
    payload: PipelineEvents[K],
  ): void {
    for (const listener of this.#listeners[event]) {
      // An async function passes for a listener, and its rejection would end the process.
      void callListener(event, () => listener(payload));
    }
  }
}

async function callListener(event: string, call: () => unknown): Promise<void> {
  try {
    await call();
  } catch (error) {
    process.emitWarning(
      `A listener of the event "${event}" failed with ${errorClass(error)}.`,
      'ReplicantWarning',
    );
  }
}
