import type { Sink } from '../deliver/sink.js';
import type { ArrivingWork } from '../deliver/work.js';
import type { CheckpointContext } from '../model/checkpoint.js';
import { errorClass } from '../model/error-class.js';
import { HaltError } from '../model/halt.js';
import type { Lsn } from '../model/lsn.js';
import type { Relation } from '../model/relation.js';
import type { Transaction } from '../model/transaction.js';
import {
  available,
  readCheckpoint,
  watermarkOf,
} from '../server/checkpoint-reading.js';
import type { Positions } from '../source/positions.js';
import type { ShapeStorage } from './shapes.js';
import type { SinkWork } from './work.js';

/** What becomes durable, and where that is written. */
export interface DurabilitySubject {
  readonly sink: Sink;
  readonly context: CheckpointContext;
  readonly positions: Positions;
  readonly shapes: ShapeStorage;
  /** Is told that the checkpoint is written. */
  readonly work: SinkWork;
  warning(message: string): void;
}

/** Keeps the checkpoint of one connection true to what the sink has done. */
export class Durability {
  readonly #subject: DurabilitySubject;

  constructor(subject: DurabilitySubject) {
    this.#subject = subject;
  }

  /** The library writes the checkpoint, by {@link commit}; otherwise the sink has done so. */
  get ofLibrary(): boolean {
    return this.#subject.sink.checkpoint.kind === 'store';
  }

  /** Writes the library's checkpoint: the sink has done everything through this transaction. */
  async commit(
    shapes: readonly Relation[],
    commitLsn: Lsn,
    end: Lsn,
  ): Promise<void> {
    const { checkpoint } = this.#subject.sink;
    if (checkpoint.kind !== 'store') return;
    this.#subject.shapes.begin(shapes);
    await this.#writing(checkpoint.keeper.commit(commitLsn, end));
    this.#subject.shapes.durable(shapes, commitLsn, true);
    this.#subject.positions.store(end);
  }

  /**
   * Notes that a transaction is durable in the sink.
   *
   * @returns whether the sink's keeper advanced to it: it has stored its end then, as far as that had arrived
   */
  note(shapes: readonly Relation[], commitLsn: Lsn): boolean {
    const { checkpoint } = this.#subject.sink;
    const advancedTo =
      checkpoint.kind === 'reader' ? null : checkpoint.keeper.advancedTo;
    const stored = advancedTo !== null && advancedTo >= commitLsn;
    this.#subject.shapes.durable(shapes, commitLsn, stored);
    return stored;
  }

  /**
   * Stores what is durable and not stored yet. Only while nothing runs.
   *
   * @returns whether there was anything to store
   */
  async store(): Promise<boolean> {
    const { positions, sink, shapes } = this.#subject;
    const position = positions.storable;
    if (sink.checkpoint.kind === 'reader' || position === null) return false;
    await this.#writing(available(sink.checkpoint.keeper.confirm(position)));
    shapes.stored();
    positions.store(position);
    return true;
  }

  /** Stores how far a snapshot is, unless the sink has done so with its rows. */
  async storeProgress(progress: string | null): Promise<void> {
    const { sink } = this.#subject;
    if (
      progress === null ||
      sink.snapshotProgress !== undefined ||
      sink.checkpoint.kind === 'reader'
    )
      return;
    const { keeper } = sink.checkpoint;
    if (keeper.storedProgress === progress) return;
    await this.#writing(
      available(Promise.resolve(keeper.storeProgress?.(progress))),
    );
  }

  /** Whether this is how far a snapshot is, as the sink's checkpoint says now. */
  async hasProgress(progress: string | null): Promise<boolean> {
    const { sink, context } = this.#subject;
    if (progress === null) return false;
    if (sink.snapshotProgress !== undefined)
      return (
        (await available(Promise.resolve(sink.snapshotProgress(context)))) ===
        progress
      );
    if (sink.checkpoint.kind === 'reader') return false;
    const stored = await available(sink.checkpoint.keeper.load());
    return stored?.progress === progress;
  }

  /** Up to which commit the sink has everything, as its own checkpoint says now; `null` for nothing. */
  async applied(): Promise<Lsn | null> {
    const { sink, context } = this.#subject;
    const { checkpoint } = sink;
    if (checkpoint.kind === 'reader')
      return watermarkOf(await readCheckpoint(checkpoint, context));
    // Not read anew as at a connect: what waits to be stored beside it stays.
    const stored = await available(checkpoint.keeper.load());
    return stored === null ? null : watermarkOf(stored);
  }

  /** A handler that rejects has rolled back, unless its checkpoint was not in the transaction of its rows. */
  async refuseAdvanced({ commitLsn }: Transaction): Promise<void> {
    const { checkpoint, name } = this.#subject.sink;
    if (checkpoint.kind !== 'keeper') return;
    // What cannot be read now is read at the next connect.
    const stored = await checkpoint.keeper.load().catch(() => null);
    if (stored?.commitLsn !== commitLsn) return;
    throw new HaltError('sink_failed/partial_transaction', {
      detail: `the checkpoint of ${name} stands at a transaction of which the connection brought a part only; it was not set back, and has to be before the next start: advance it in the database transaction that writes the rows`,
      lsn: commitLsn,
    });
  }

  /**
   * A handler that resolves although the rest was lost has committed a part, which nothing would ever complete. Not so when the
   * library keeps the checkpoint: that was not written, and the part comes again with the whole.
   */
  async refusePart({ transaction, shapes }: ArrivingWork): Promise<void> {
    const { commitLsn } = transaction;
    const { checkpoint, name } = this.#subject.sink;
    if (checkpoint.kind === 'store') return;
    if (checkpoint.kind === 'keeper') {
      this.#subject.shapes.partLeft(shapes);
      // Otherwise the next start would take the part for the whole.
      await checkpoint.keeper.retract(commitLsn).catch((error: unknown) => {
        this.#subject.warning(
          `the checkpoint of a transaction that was applied in part was not set back (${errorClass(error)})`,
        );
      });
    }
    throw new HaltError('sink_failed/partial_transaction', {
      detail: `a handler of ${name} resolved although the connection was lost before it had read the transaction to its end`,
      lsn: commitLsn,
    });
  }

  async #writing(write: Promise<void>): Promise<void> {
    this.#subject.work.begin(performance.now());
    try {
      await write;
    } finally {
      this.#subject.work.end();
    }
  }
}
