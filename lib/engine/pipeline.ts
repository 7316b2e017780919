import { AsyncResource } from 'node:async_hooks';
import type { AttachedSink } from './deliver/sink.js';
import { SinkRetries } from './deliver/sink-retries.js';
import { HaltError, type Halt } from './model/halt.js';
import type { Lsn } from './model/lsn.js';
import { within } from './model/within.js';
import type { PipelineOptions } from './options/pipeline-options.js';
import {
  resolveConnection,
  resolveOptions,
  type ResolvedOptions,
} from './options/resolve-options.js';
import { HandlerScope } from './pipeline/handlers.js';
import { LibraryCheckpoint } from './pipeline/library-checkpoint.js';
import { PipelineLoop, type LoopEnd } from './pipeline/loop.js';
import { PipelineRecord } from './pipeline/record.js';
import { PipelineSchema } from './pipeline/schema.js';
import { sinkMaker, type SinkMaker } from './pipeline/sink-maker.js';
import { skipRefusal } from './pipeline/skip-refusal.js';
import { Skipping } from './pipeline/skipping.js';
import { SlotWatch } from './pipeline/slot-watch.js';
import { SourceAccess } from './pipeline/source-access.js';
import { PipelineStateError } from './pipeline/state-error.js';
import { pipelineStatus } from './pipeline/status.js';
import { PipelineWaiters } from './pipeline/waiters.js';
import { SinkWork } from './pipeline/work.js';
import { Advice } from './server/advice.js';
import { withSqlSession } from './server/session.js';
import { dropSlot, readConfirmedFlush } from './server/slot.js';
import { readSlotSample } from './server/slot-health.js';
import { readWalEnd } from './server/wal-end.js';
import type {
  PipelineEvents,
  PipelineListener,
} from './telemetry/pipeline-events.js';
import type { PipelineState } from './telemetry/pipeline-state.js';
import type { PipelineStatus } from './telemetry/pipeline-status.js';

/** Captures one slot into one sink. Injected with `@InjectPipeline()`. */
export class Pipeline {
  /** Validated, with every default filled in. */
  readonly options: ResolvedOptions;
  readonly #source: SourceAccess;
  /** `null` when the sink keeps its checkpoint. */
  readonly #library: LibraryCheckpoint | null;
  readonly #record = new PipelineRecord();
  readonly #waiters = new PipelineWaiters();
  readonly #schema = new PipelineSchema();
  readonly #work = new SinkWork();
  readonly #slotWatch: SlotWatch;
  readonly #handlers = new HandlerScope();
  /** Pipelines run in the context in which they were made, never in that of a request that starts them. */
  readonly #root = new AsyncResource('nestjs-replicant');
  #sink: SinkMaker | null = null;
  #loop: PipelineLoop | null = null;
  /** What this start was told to pass over. */
  #skipping: Skipping | null = null;
  #stopping: Promise<void> | null = null;
  /** Was started after it was asked to stop and before it had stopped. */
  #startAgain = false;
  /** See {@link PipelineLoop.unsettled}: that of an earlier start. */
  #unsettled: Promise<Halt | null> = Promise.resolve(null);
  /** Each ends what a start has open beside its connection: the last start, and those whose deliveries outlived them. None rejects. */
  readonly #releases = new Set<() => Promise<void>>();
  /** The wait for a delivery that outlived a halt; one for all that stop the halted pipeline. */
  #outlived: Promise<unknown> | null = null;
  /** Was started and not asked to stop, so that its slot matters. */
  #wanted = false;

  /** @throws {@link ReplicantConfigError} for an option that cannot work */
  constructor(
    /** The name under which it is registered. */
    readonly name: string,
    options: PipelineOptions,
  ) {
    this.options = resolveOptions(options);
    this.#source = new SourceAccess(
      resolveConnection('connection', options.connection),
      `nestjs-replicant ${name}`,
    );
    const { checkpointStore } = this.options;
    this.#library =
      options.checkpointStore === undefined || checkpointStore === null
        ? null
        : new LibraryCheckpoint(
            options.checkpointStore.connection,
            checkpointStore,
            (event, payload) => this.#record.events.emit(event, payload),
            this.#work,
          );
    const { slotName, health } = this.options;
    this.#slotWatch = new SlotWatch({
      ...health,
      ask: (signal) =>
        withSqlSession(this.#source.target(signal), (session) =>
          readSlotSample(session, slotName),
        ),
    });
  }

  /** What it is doing; see {@link PipelineState}. */
  get state(): PipelineState {
    return this.#record.state;
  }

  /** Why it is in this state, as far as there is something to say; free of values. */
  get reason(): string | null {
    return this.#record.reason;
  }

  /** Why it stands still; `null` unless the state is `halted`. */
  get halt(): Halt | null {
    return this.#record.halt;
  }

  /** Gives the pipeline its sink. The module does this once, before the start. */
  attach(sink: AttachedSink): void {
    if (this.#sink !== null)
      throw new PipelineStateError(
        `Pipeline "${this.name}" has a sink already.`,
      );
    this.#sink = sinkMaker(
      this.name,
      sink,
      this.#library,
      this.#source.applicationName,
    );
  }

  /**
   * Starts in the background; after a stop or a halt, starts anew from the checkpoint. Does nothing while it runs.
   *
   * @throws {@link PipelineStateError} when no sink is attached
   */
  start(): void {
    const sink = this.#attached();
    if (this.#stopping !== null) {
      this.#startAgain = true;
      return;
    }
    if (this.#loop !== null) return;
    this.#begin(sink, null);
  }

  /**
   * Starts a halted pipeline again and passes over the one transaction at which its sink failed: its changes are lost to the
   * sink, everything before and behind it is delivered. Resolves when its end is stored with the checkpoint and confirmed to
   * the server, so that it never comes again. The order holds for this start alone. A message outside transactions at which
   * the sink failed is passed over in the same way.
   *
   * @param lsn - exactly {@link Halt.lsn} of {@link Pipeline.halt}
   * @throws {@link PipelineStateError} unless the pipeline has halted with `sink_failed`, or a code below it, at this position;
   * nothing is touched then. And when the pipeline is stopped before it is done
   * @throws {@link HaltError} when the pipeline halts before it is done
   */
  async skipTransaction(lsn: Lsn): Promise<void> {
    const { state, halt, name } = this;
    const stopping = this.#stopping !== null;
    const refusal = skipRefusal({ state, stopping, halt }, lsn);
    if (refusal !== null)
      throw new PipelineStateError(`Pipeline "${name}" ${refusal}`);
    const of = halt?.delivery === 'message' ? 'message' : 'transaction';
    const skipping = new Skipping(of, lsn, {
      confirmedFlush: (signal) =>
        this.#source.ask(
          (session) => readConfirmedFlush(session, this.options.slotName),
          signal,
        ),
      skipped: () => this.#record.events.emit('skipped', { commitLsn: lsn }),
    });
    this.#begin(this.#attached(), skipping);
    await skipping.done;
  }

  #begin(makeSink: SinkMaker, skipping: Skipping | null): void {
    this.#startAgain = false;
    this.#skipping = skipping;
    this.#wanted = true;
    this.#slotWatch.forget();
    const abort = new AbortController();
    const sink = makeSink(abort.signal);
    const { checkpoint } = sink;
    const release = async (): Promise<void> => {
      this.#releases.delete(release);
      abort.abort();
      if (checkpoint.kind === 'store') await checkpoint.keeper.close();
    };
    this.#releases.add(release);
    const record = this.#record;
    const loop = new PipelineLoop(
      {
        pipeline: this.name,
        options: this.options,
        sink,
        target: this.#source.target(abort.signal),
        advice: new Advice(this.options.publications, (message) =>
          record.warning(message),
        ),
        schema: this.#schema,
        skipping,
        work: this.#work,
        retries: new SinkRetries(this.options.sinkRetry),
        insideDelivery: (work) => this.#handlers.run(work),
        delivered: ({ commitLsn }, changes, ms) =>
          record.delivered(commitLsn, changes, ms),
        tell: (event, payload) => record.events.emit(event, payload),
        schemaChange: (change, commitLsn) =>
          record.schemaChange(change, commitLsn),
        moved: () => this.#moved(),
        warning: (message) => record.warning(message),
        waiting: (wait) => record.slotWaits(wait),
      },
      {
        streaming: () => this.#streaming(),
        interrupted: (reason) => record.interrupted(reason),
        reconnecting: (reason, attempt, delayMs) =>
          record.reconnecting(reason, attempt, delayMs),
        standby: (reason, delayMs) => record.standby(reason, delayMs),
      },
      abort,
      this.#unsettled,
    );
    this.#loop = loop;
    this.#outlived = null;
    record.connecting();
    void this.#root
      .runInAsyncScope(() => loop.run())
      .then((end) => {
        if (end !== 'stopped') this.#ended(loop, end);
      });
  }

  /**
   * Stops: the running delivery may end within the option `drainTimeout`, what is durable is confirmed, and the
   * connection is closed. Never rejects. Called inside a handler it does not wait for that handler.
   */
  async stop(): Promise<void> {
    this.#startAgain = false;
    this.#wanted = false;
    this.#slotWatch.cancel();
    this.#skipping?.stopped(this.#wasStopped());
    const loop = this.#loop;
    if (loop !== null) {
      // The last store of positions must not join a transaction of the caller's context.
      this.#stopping ??= this.#root.runInAsyncScope(() => this.#stop(loop));
    } else if (this.halt !== null) {
      this.#outlived ??= within(
        this.#unsettled,
        this.options.drainTimeout,
      ).then(() => this.#release());
    }
    if (this.#handlers.inside) return;
    await this.#stopping;
    await this.#outlived;
  }

  /**
   * Resolves when the pipeline streams.
   *
   * @throws {@link HaltError} when it halts
   * @throws {@link PipelineStateError} when it is stopped
   */
  async whenStreaming(): Promise<void> {
    if (this.state === 'streaming') return;
    this.#refuseUnlessRunning('idle');
    await this.#waiters.streaming();
  }

  /**
   * Resolves when everything up to a position is durable in the sink, so that a read sees it.
   *
   * @param lsn - a position of the source, such as the answer of `pg_current_wal_lsn()` after a commit; by default
   * the end of the server's WAL, which costs a short connection
   * @throws {@link HaltError} when the pipeline halts
   * @throws {@link PipelineStateError} when it does not run or is stopped
   * @throws {@link ConnectionFault} when the end of the WAL cannot be asked for
   */
  async caughtUp(lsn?: Lsn): Promise<void> {
    this.#refuseUnlessRunning();
    const wanted = lsn ?? (await this.#source.ask(readWalEnd));
    if ((this.#loop?.connection?.positions.durable ?? 0n) >= wanted) return;
    this.#refuseUnlessRunning();
    await this.#waiters.reaching(wanted);
  }

  /**
   * Drops the replication slot, so that the server keeps no WAL for it any more. The checkpoint stays.
   *
   * @throws {@link PipelineStateError} while the pipeline runs
   * @throws {@link ConnectionFault} when the server cannot be reached or refuses, such as 42704 where there is no slot and 55006 where
   * another process uses it
   */
  async dropSlot(): Promise<void> {
    if (this.#loop !== null)
      throw new PipelineStateError(
        `Pipeline "${this.name}" runs: stop it before dropping its slot.`,
      );
    await this.#source.ask((session) =>
      dropSlot(session, this.options.slotName),
    );
    this.#slotWatch.forget();
  }

  /**
   * Asks the source about the slot, on a short connection, so that {@link Pipeline.status} knows it. Does nothing unless the
   * pipeline runs or has halted, while it asks already, and within `health.cacheFor` of the last time. Resolves when that is
   * settled, after `health.timeout` at the latest, and never rejects: what cannot be asked is unknown. Health probes call
   * it and do not wait.
   */
  async checkSlot(): Promise<void> {
    if (!this.#wanted) return;
    const connects =
      this.state === 'connecting' || this.state === 'reconnecting';
    await this.#root.runInAsyncScope(() => this.#slotWatch.check(connects));
  }

  /** Where it is, ready for JSON. It asks nobody. */
  status(): PipelineStatus {
    return pipelineStatus(
      this.name,
      this.options.slotName,
      this.#record,
      this.#loop?.connection ?? null,
      this.#work,
      this.#slotWatch.status,
    );
  }

  /** Calls `listener` at each event of this name. A listener that throws or rejects costs a process warning, and hurts nobody else. */
  on<K extends keyof PipelineEvents>(
    event: K,
    listener: PipelineListener<K>,
  ): this {
    this.#record.events.on(event, listener);
    return this;
  }

  /** Removes a listener; does nothing when it is not there. */
  off<K extends keyof PipelineEvents>(
    event: K,
    listener: PipelineListener<K>,
  ): this {
    this.#record.events.off(event, listener);
    return this;
  }

  #attached(): SinkMaker {
    if (this.#sink === null) {
      throw new PipelineStateError(
        `Pipeline "${this.name}" has no sink: declare a class with @ReplicantSink().`,
      );
    }
    return this.#sink;
  }

  #wasStopped(): PipelineStateError {
    return new PipelineStateError(`Pipeline "${this.name}" was stopped.`);
  }

  #refuseUnlessRunning(alsoAllowed?: PipelineState): void {
    if (this.halt !== null) throw new HaltError(this.halt);
    if (this.#loop === null && this.state !== alsoAllowed) {
      throw new PipelineStateError(
        `Pipeline "${this.name}" does not run (${this.state}).`,
      );
    }
  }

  async #stop(loop: PipelineLoop): Promise<void> {
    this.#record.draining();
    const end = await loop.stop(this.options.drainTimeout);
    await this.#release();
    if (end === 'stopped' && loop.connection?.deliveryError) {
      this.#record.warning(
        'the delivery that ran while stopping failed; what it did not apply comes again at the next start',
      );
    }
    this.#ended(loop, end);
    this.#stopping = null;
    if (this.#startAgain && end === 'stopped') this.start();
  }

  async #release(open = [...this.#releases]): Promise<void> {
    await Promise.all(open.map((release) => release()));
  }

  #ended(loop: PipelineLoop, end: LoopEnd): void {
    if (this.#loop !== loop) return;
    this.#loop = null;
    const open = [...this.#releases];
    this.#unsettled = loop.unsettled.then(async (halt) => {
      await this.#release(open);
      return halt;
    });
    if (end === 'stopped') {
      this.#record.stopped();
      // Who started it again meanwhile waits for the new stream.
      if (this.#startAgain) return;
      this.#waiters.reject(this.#wasStopped());
    } else {
      const error = new HaltError(end);
      // Before anybody is told: who hears it may start the pipeline again, and wait for that.
      this.#waiters.reject(error);
      this.#skipping?.halted(error);
      this.#record.halted(end);
    }
  }

  #streaming(): void {
    this.#slotWatch.connected();
    this.#record.streaming();
    this.#waiters.noteStreaming();
    this.#moved();
  }

  #moved(): void {
    const positions = this.#loop?.connection?.positions;
    if (positions === undefined) return;
    this.#work.durable(positions.durable);
    this.#waiters.noteDurable(positions.durable);
    this.#skipping?.moved(positions.flush);
  }
}
