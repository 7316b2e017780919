import { SinkRetries } from '../deliver/sink-retries.js';
import { answerOf } from '../model/answer.js';
import { errorClass } from '../model/error-class.js';
import { ConnectionFault } from '../model/connection-fault.js';
import { HaltError } from '../model/halt.js';
import { watermarkBelow } from '../model/lsn.js';
import { encodeProgress } from '../model/progress-token.js';
import {
  completeProgress,
  type ProgressTable,
} from '../model/snapshot-progress.js';
import type { SnapshotContext } from '../model/snapshot.js';
import {
  available,
  furthestOf,
  readCheckpoint,
} from '../server/checkpoint-reading.js';
import type { StreamPlan } from '../server/connect-chain.js';
import { withSqlSession } from '../server/session.js';
import type { SnapshotPlan } from '../server/snapshot-plan.js';
import { dropSlot } from '../server/slot.js';
import {
  copyInitially,
  type InitialPage,
} from '../snapshot/initial/initial-copy.js';
import { Heartbeat } from '../source/heartbeat.js';
import type { ReplicationSession } from '../source/replication-session.js';
import { SinkCalls } from './sink-calls.js';
import type { ConnectionSubject } from './subject.js';
import type { SinkWork } from './work.js';

const DROP_TIMEOUT_MS = 10_000;

/** Copies the rows that a new slot does not stream, and stores where the stream begins behind them. */
export class InitialSnapshot {
  readonly #subject: ConnectionSubject;
  readonly #session: ReplicationSession;
  readonly #context: StreamPlan['context'];
  readonly #plan: SnapshotPlan;
  readonly #stopping = new AbortController();
  #released: Promise<unknown> | null = null;
  readonly #heartbeat: Heartbeat;
  /** Of each table: its pages are given to the sink one after the other. */
  readonly #calls = new Map<string, SinkCalls>();

  constructor(
    subject: ConnectionSubject,
    session: ReplicationSession,
    { context, walSenderTimeoutMs }: StreamPlan,
    plan: SnapshotPlan,
  ) {
    this.#subject = subject;
    this.#session = session;
    this.#context = context;
    this.#plan = plan;
    this.#heartbeat = new Heartbeat(session, walSenderTimeoutMs);
  }

  /**
   * Copies everything. Whatever it fails with, no transaction of its own is open then; and the slot is dropped, unless a position behind
   * the copy may be stored.
   */
  async make(): Promise<void> {
    const making = this.#make();
    this.#subject.copying({
      stop: () => this.#stopping.abort(),
      ended: making.then(
        () => {},
        () => {},
      ),
    });
    return making;
  }

  async #make(): Promise<void> {
    const { meter, unfinishedSlot } = this.#subject;
    let tables: readonly ProgressTable[];
    try {
      tables = await this.#copy();
      // Who has lost the slot meanwhile must not touch the checkpoint any more.
      await this.#session.commands.query('select');
    } catch (error) {
      meter.interrupted();
      await this.#dropSlot();
      throw error;
    }
    try {
      await this.#handOver(tables);
    } catch (error) {
      meter.interrupted();
      if (error instanceof HaltError && (await this.#isKnownEmpty()))
        await this.#dropSlot();
      throw error;
    }
    unfinishedSlot.consistentPoint = null;
    meter.complete();
  }

  async #copy(): Promise<readonly ProgressTable[]> {
    const { options, capture, target, meter } = this.#subject;
    const lost = new AbortController();
    const ended = this.#session.lost.catch((error: unknown) => {
      lost.abort();
      throw error;
    });
    const signal = AbortSignal.any([
      target.signal,
      this.#stopping.signal,
      lost.signal,
    ]);
    const endCalls = (): void => {
      for (const calls of this.#calls.values()) calls.end();
    };
    signal.addEventListener('abort', endCalls, { once: true });
    const copy = copyInitially({
      target: { ...target, signal },
      capture,
      types: options.types,
      parallelTables:
        options.snapshot?.mode === 'initial'
          ? options.snapshot.parallelTables
          : 1,
      exported: this.#plan,
      deliver: (page) => this.#deliver(page),
      meter,
    });
    try {
      return await Promise.race([copy, ended]);
    } finally {
      // The copy ends by itself when its signal is aborted, and its handlers have settled then.
      await copy.catch(() => {});
      this.#heartbeat.stop();
      signal.removeEventListener('abort', endCalls);
    }
  }

  async #deliver(page: InitialPage): Promise<void> {
    if (this.#stopping.signal.aborted)
      throw new ConnectionFault('the pipeline was stopped');
    // Every reader has adopted the snapshot: the transaction that exports it need not stay open.
    this.#released ??= this.#session.commands.query('select');
    await this.#released;
    this.#heartbeat.start();
    await this.#handOut(page);
  }

  #handOut({ rows, relation, firstForTable }: InitialPage): Promise<void> {
    const context: SnapshotContext = {
      pipeline: this.#subject.pipeline,
      slotName: this.#context.slotName,
      mode: 'initial',
      relation,
      snapshotLsn: this.#plan.consistentPoint,
      firstForTable,
      complete: false,
      progress: null,
    };
    return this.#callsOf(relation).snapshot(
      { rows, context },
      async () => false,
    );
  }

  #callsOf(relation: string): SinkCalls {
    const known = this.#calls.get(relation);
    if (known !== undefined) return known;
    const { options } = this.#subject;
    const calls = new SinkCalls({
      ...this.#subject,
      batches: false,
      work: besideOthers(this.#subject.work),
      around: options.around,
      retries: new SinkRetries(options.sinkRetry),
    });
    this.#calls.set(relation, calls);
    return calls;
  }

  /** Everything through the watermark is in the sink: the slot's position is a boundary, and what commits there is still to come. */
  async #handOver(tables: readonly ProgressTable[]): Promise<void> {
    const { sink } = this.#subject;
    const { consistentPoint } = this.#plan;
    await this.#tellComplete();
    const { checkpoint } = sink;
    if (checkpoint.kind === 'reader') return this.#requireStored();
    const { keeper } = checkpoint;
    const progress = encodeProgress(completeProgress(consistentPoint, tables));
    await available(Promise.resolve(keeper.storeProgress?.(progress)));
    await available(keeper.confirm(consistentPoint));
  }

  async #tellComplete(): Promise<void> {
    const { sink, pipeline } = this.#subject;
    const { snapshotComplete } = sink;
    if (snapshotComplete === undefined) return;
    const { consistentPoint } = this.#plan;
    const checkpoint = {
      pipeline,
      slotName: this.#context.slotName,
      commitLsn: watermarkBelow(consistentPoint),
      commitEndLsn: consistentPoint,
    };
    const what = `@OnSnapshotComplete() of ${sink.name}`;
    await this.#subject.insideDelivery(async () => {
      const answer = await answerOf(() => snapshotComplete(checkpoint));
      if (answer.kind === 'no_promise')
        throw new HaltError('snapshot_failed', {
          detail: `${what} returned no promise`,
        });
      if (answer.kind === 'rejected')
        throw new HaltError('snapshot_failed', {
          detail: `${what} rejected with ${errorClass(answer.error)}`,
          sinkError: answer.error,
        });
    });
  }

  /** Otherwise the next start would find a slot and nothing behind the snapshot. */
  async #requireStored(): Promise<void> {
    if (!(await this.#isEmpty())) return;
    throw new HaltError('snapshot_failed', {
      detail: `@OnSnapshotComplete() of ${this.#subject.sink.name} resolved, and its @Checkpoint() says that nothing was applied`,
    });
  }

  async #isEmpty(): Promise<boolean> {
    const { sink } = this.#subject;
    return (
      furthestOf(await readCheckpoint(sink.checkpoint, this.#context)) === null
    );
  }

  /** Not so when it cannot be read: it may have been written before the answer was lost. */
  async #isKnownEmpty(): Promise<boolean> {
    return this.#isEmpty().catch(() => false);
  }

  /** Never rejects: what cannot be dropped now is dropped by the next attempt of this process. */
  async #dropSlot(): Promise<void> {
    const { target, unfinishedSlot } = this.#subject;
    const { slotName } = this.#context;
    this.#session.destroy();
    const signal = AbortSignal.timeout(DROP_TIMEOUT_MS);
    try {
      await withSqlSession({ ...target, signal }, (session) =>
        dropSlot(session, slotName),
      );
      unfinishedSlot.consistentPoint = null;
    } catch (error) {
      this.#subject.warning(
        `the slot ${slotName} of a snapshot that was not finished could not be dropped (${errorClass(error)}); the next attempt of this process drops it, and otherwise pipeline.dropSlot()`,
      );
    }
  }
}

/** The calls of one table run one after the other, beside those of other tables. */
function besideOthers(work: SinkWork): Pick<SinkWork, 'begin' | 'end'> {
  let end: (() => void) | null = null;
  return {
    begin(at) {
      end = work.beginBeside(at);
    },
    end: () => end?.(),
  };
}
