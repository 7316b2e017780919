import { AsyncResource } from 'node:async_hooks';
import type { AttachedSink } from './deliver/sink.js';
import type { Halt } from './model/halt.js';
import type { Lsn } from './model/lsn.js';
import type { PipelineOptions } from './options/pipeline-options.js';
import {
  resolveConnection,
  resolveOptions,
  type ResolvedOptions,
} from './options/resolve-options.js';
import { HandlerScope } from './pipeline/handlers.js';
import { LibraryCheckpoint } from './pipeline/library-checkpoint.js';
import { PipelineLifecycle } from './pipeline/lifecycle.js';
import { PipelineRecord } from './pipeline/record.js';
import { PipelineRequests } from './pipeline/requests.js';
import { PipelineRun } from './pipeline/run.js';
import { PipelineSchema } from './pipeline/schema.js';
import { sinkMaker, type SinkMaker } from './pipeline/sink-maker.js';
import type { Skipping } from './pipeline/skipping.js';
import { SlotWatch } from './pipeline/slot-watch.js';
import { SourceAccess } from './pipeline/source-access.js';
import { PipelineStateError } from './pipeline/state-error.js';
import { pipelineStatus } from './pipeline/status.js';
import { PipelineWaiters } from './pipeline/waiters.js';
import { SinkWork } from './pipeline/work.js';
import type { UnfinishedSlot } from './server/chain-subject.js';
import { withSqlSession } from './server/session.js';
import { readSlotSample } from './server/slot-health.js';
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
  readonly #unfinishedSlot: UnfinishedSlot = { consistentPoint: null };
  readonly #lifecycle: PipelineLifecycle;
  readonly #requests: PipelineRequests;
  /** Pipelines run in the context in which they were made, never in that of a request that starts them. */
  readonly #root = new AsyncResource('nestjs-replicant');
  #sink: SinkMaker | null = null;
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
      !options.checkpointStore || checkpointStore === null
        ? null
        : new LibraryCheckpoint(
            options.checkpointStore.connection,
            checkpointStore,
            (event, payload) => this.#record.events.emit(event, payload),
            this.#work,
          );
    const { slotName, health, drainTimeout } = this.options;
    const capture = captureSetOf(this.options);
    this.#capture = capture;
    this.#slotWatch = new SlotWatch({
      ...health,
      ask: (signal) =>
        withSqlSession(this.#source.target(signal), async (session) => {
          await this.#record.tables.look(session, this.options, capture);
          return readSlotSample(session, slotName);
        }),
    });
    this.#lifecycle = new PipelineLifecycle({
      pipeline: name,
      drainTimeout,
      root: this.#root,
      record: this.#record,
      waiters: this.#waiters,
      make: (skipping, unsettled) => this.#make(skipping, unsettled),
    });
    this.#requests = new PipelineRequests({
      pipeline: name,
      slotName,
      source: this.#source,
      record: this.#record,
      lifecycle: this.#lifecycle,
      waiters: this.#waiters,
      handlers: this.#handlers,
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
    this.#attached();
    this.#lifecycle.start();
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
    await this.#requests.skipTransaction(lsn);
  }

  /**
   * Stops: the running delivery may end within the option `drainTimeout`, what is durable is confirmed, and the
   * connection is closed. Never rejects. Called inside a handler it does not wait for that handler.
   */
  async stop(): Promise<void> {
    this.#wanted = false;
    this.#slotWatch.cancel();
    const stopped = this.#lifecycle.stop();
    if (this.#handlers.inside) return;
    await stopped;
  }

  /**
   * Resolves when the pipeline streams.
   *
   * @throws {@link HaltError} when it halts
   * @throws {@link PipelineStateError} when it is stopped
   */
  async whenStreaming(): Promise<void> {
    await this.#requests.whenStreaming();
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
    await this.#requests.caughtUp(lsn);
  }

  /**
   * Copies tables that exist already beside the stream: such as those that were added to the publication later, or whose rows the sink
   * has lost. The sink first gets a call of its `@OnSnapshot()` method without rows and with `firstForTable`, and removes what it has of the
   * table. Resolves when they are copied; a connection that is lost meanwhile, or a restart, goes on where it was. A handler of the sink must not
   * await it: the rows come when that handler is done. One that does is warned of after 10 s.
   *
   * @param tables - as {@link Change.relation} has them; the publications must carry them
   * @throws {@link PipelineStateError} when the pipeline does not stream, has not the option `snapshot`, or a sink that stores no progress;
   * nothing is touched then. And when the pipeline is stopped before it is done
   * @throws {@link SnapshotRefusedError} when a table is not published or cannot be read; nothing is touched then, and the stream goes on
   * @throws {@link ConnectionFault} when the source cannot be asked which tables there are; nothing is touched then
   * @throws {@link HaltError} when the pipeline halts before it is done
   */
  async snapshot(tables: readonly string[]): Promise<void> {
    await this.#requests.snapshot(tables);
  }

  /**
   * Drops the replication slot, so that the server keeps no WAL for it any more. The checkpoint stays.
   *
   * @throws {@link PipelineStateError} while the pipeline runs
   * @throws {@link ConnectionFault} when the server cannot be reached or refuses, such as 42704 where there is no slot and 55006 where
   * another process uses it
   */
  async dropSlot(): Promise<void> {
    await this.#requests.dropSlot();
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
      this.#lifecycle.running?.connection ?? null,
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

  #make(
    skipping: Skipping | null,
    unsettled: Promise<Halt | null>,
  ): PipelineRun {
    this.#wanted = true;
    this.#slotWatch.forget();
    return new PipelineRun(
      {
        pipeline: this.name,
        options: this.options,
        source: this.#source,
        makeSink: this.#attached(),
        skipping,
        record: this.#record,
        schema: this.#schema,
        work: this.#work,
        handlers: this.#handlers,
        unfinishedSlot: this.#unfinishedSlot,
        streaming: () => this.#streaming(),
        moved: () => this.#moved(),
      },
      unsettled,
    );
  }

  #streaming(): void {
    this.#slotWatch.connected();
    this.#record.streaming();
    this.#waiters.noteStreaming();
    this.#moved();
  }

  #moved(): void {
    const run = this.#lifecycle.running;
    const positions = run?.connection?.positions;
    if (positions === undefined) return;
    this.#work.durable(positions.durable);
    this.#waiters.noteDurable(positions.durable);
    run?.skipping?.moved(positions.flush);
  }
}
