import type { ConnectionSubject } from './subject.js';
import type { Work } from '../deliver/work.js';
import { deferred } from '../model/deferred.js';
import { ConnectionFault } from '../model/connection-fault.js';
import { type Halt, HaltError } from '../model/halt.js';
import type { Lsn } from '../model/lsn.js';
import type { CatalogTable } from '../model/relation.js';
import { within } from '../model/within.js';
import { makeAssembler } from './assembling.js';
import { Backpressure } from './backpressure.js';
import { batchLimits } from './batch-limits.js';
import { PipelineDelivery } from './delivery.js';
import { CatalogGuard } from './catalog-guard.js';
import { CopyBesideStream } from './copy-beside-stream.js';
import { InitialSnapshot } from './initial-snapshot.js';
import { type IntakePorts, PipelineIntake } from './intake.js';
import { withPlannedSession } from './opening.js';
import { sourceQuestions } from './source-questions.js';
import { ServerNotices } from './server-notices.js';
import { ShapeStorage } from './shapes.js';
import { Streamed } from './streamed.js';
import { refusingPlugin } from '../server/capture/refusing-plugin.js';
import { readCheckpoint, watermarkOf } from '../server/checkpoint-reading.js';
import type { StreamPlan } from '../server/connect-chain.js';
import type { Phase } from '../server/error-classes.js';
import { type CommandSession, withSqlSession } from '../server/session.js';
import { Feedback } from '../source/feedback.js';
import { PacedReading, type Reading } from '../source/paced-reading.js';
import { Positions } from '../source/positions.js';
import { ReadGate } from '../source/read-gate.js';
import type { ReplicationSession } from '../source/replication-session.js';
import type { StreamedStatus } from '../telemetry/streamed-status.js';

/** How long the server is given to take note of the last status. */
const FINISH_TIMEOUT_MS = 1_000;

/** One connection's life: joins the rooms that a row runs through, from the socket to the sink and back to the server. */
export class PipelineConnection {
  readonly positions: Positions;
  readonly #subject: ConnectionSubject;
  readonly #session: ReplicationSession;
  readonly #notices: ServerNotices;
  readonly #plan: StreamPlan;
  readonly #gate: ReadGate;
  readonly #reading: PacedReading;
  readonly #streamed: Streamed | null;
  readonly #intake: PipelineIntake;
  readonly #shapes: ShapeStorage;
  readonly #delivery: PipelineDelivery;
  readonly #backpressure: Backpressure;
  readonly #feedback: Feedback;
  readonly #fault = deferred<never>();
  readonly #copy: CopyBesideStream;
  readonly #guard: CatalogGuard | null;
  /** Transactions up to this commit position were applied before. */
  #watermark: Lsn | null = null;
  #framesFlowed = false;

  private constructor(
    subject: ConnectionSubject,
    session: ReplicationSession,
    plan: StreamPlan,
    tables: readonly CatalogTable[],
  ) {
    this.#subject = subject;
    this.#session = session;
    this.#notices = new ServerNotices(subject.capture, (message) =>
      subject.warning(message),
    );
    this.#plan = plan;
    this.#gate = new ReadGate(session.socket);
    this.#reading = new PacedReading(
      session.socket,
      this.#gate,
      subject.options.readPacing,
    );
    this.positions = new Positions(
      plan.confirmedFlush,
      subject.sink.checkpoint.kind !== 'reader',
      subject.sink.kind === 'appendLog',
    );
    this.#streamed = Streamed.create(subject, plan, {
      hold: () => this.#gate.hold('spilling'),
      release: () => this.#gate.release('spilling'),
      failed: (error) => this.#fail(error),
    });
    const ports: IntakePorts = {
      positions: this.positions,
      ...sourceQuestions(subject, tables, (question) => this.#ask(question)),
      takes: (prefix) => subject.sink.message?.takes(prefix) === true,
      push: (work) => this.#push(work),
      arrived: (end) => this.#delivery.arrived(end),
      passedOver: (end) => subject.skipping?.passedOver(end),
      keepalive: (replyAsked) => {
        if (replyAsked) this.#replyAsked();
        this.#moved();
      },
      replaying: (runs) =>
        runs ? this.#gate.hold('replaying') : this.#gate.release('replaying'),
      room: () => this.#backpressure.room(),
      fail: (error) => this.#fail(error),
    };
    this.#intake = new PipelineIntake(
      subject.options.types,
      ports,
      this.#streamed?.transactions,
    );
    this.#shapes = new ShapeStorage(
      subject.schema.history,
      subject.sink.checkpoint,
    );
    this.#delivery = new PipelineDelivery({
      ...subject,
      around: subject.options.around,
      batchLimits: batchLimits(subject.options),
      context: plan.context,
      positions: this.positions,
      shapes: this.#shapes,
      blocked: () => this.#gate.isHeldFor('backpressure'),
      progressed: () => {
        this.#backpressure.releaseWhenDrained();
        this.#storeSkipped();
        this.#moved();
      },
      failed: (error) => this.#fail(error),
    });
    this.#backpressure = new Backpressure(
      this.#gate,
      this.#delivery,
      this.#intake,
      subject.options.maxInflightBytes,
    );
    this.#feedback = new Feedback({
      positions: this.positions,
      walSenderTimeoutMs: plan.walSenderTimeoutMs,
      paused: () => this.#gate.paused,
      send: (frame) => session.send(frame),
      requestStore: () => this.#delivery.requestStore(),
      dead: () =>
        this.#fail(new ConnectionFault('the server has fallen silent')),
    });
    this.#guard = CatalogGuard.create(subject, (state) =>
      this.#intake.review(state),
    );
    this.#copy = new CopyBesideStream(subject, {
      deliver: (work) => this.#delivery.push(work),
      askPosition: () => this.#feedback.ask(),
      failed: (error) => this.#fail(error),
    });
  }

  /**
   * Connects, runs the chain, starts the stream and reads the checkpoint again.
   *
   * @param entered called when the session is open, and when the server has accepted START_REPLICATION: errors are those of
   * this phase from then on
   */
  static async open(
    subject: ConnectionSubject,
    entered: (phase: Phase) => void,
  ): Promise<PipelineConnection> {
    return withPlannedSession(subject, entered, async (session, plan) => {
      if (plan.snapshot !== null)
        await new InitialSnapshot(subject, session, plan, plan.snapshot).make();
      await subject.advice.give(session.commands);
      await subject.tables.look(
        session.commands,
        subject.options,
        subject.capture,
      );
      // Not before an initial copy: a command on this session ends the snapshot that is copied.
      const tables = await subject.capture.catalog(session.commands);
      const connection = new PipelineConnection(subject, session, plan, tables);
      await connection.#start(() => entered('streaming'));
      return connection;
    });
  }

  /**
   * Begins to take in and to deliver. Not part of {@link open}: the first handler may run at once, and whoever it asks
   * to stop must know of this connection.
   */
  begin(): void {
    this.#copy.begin();
    this.#intake.begin(
      makeAssembler(this.#subject, this.#watermark, () =>
        this.#backpressure.releaseWhenDrained(),
      ),
      this.#copy.watch,
    );
    this.#guard?.start();
    this.#reading.start();
    this.#gate.release('starting');
  }

  /** Rejects when the connection has ended, with the reason. */
  get ended(): Promise<never> {
    return Promise.race([this.#fault.promise, this.#session.ended]);
  }

  /** Whether the server has sent anything since the stream began. */
  get framesFlowed(): boolean {
    return this.#framesFlowed;
  }

  /** Payload bytes received and not yet durable, of transactions that have committed. */
  get inflightBytes(): number {
    return this.#backpressure.inflightBytes;
  }

  /** What is kept of transactions that are sent while they run; `null` when none are. */
  get streamed(): StreamedStatus | null {
    if (this.#streamed === null) return null;
    const { count, bytes, bytesOnDisk } = this.#streamed.transactions;
    return { transactions: count, bytes, bytesOnDisk };
  }

  /** How the socket is read. */
  get reading(): Reading {
    return this.#reading.reading;
  }

  /** Why the last delivery failed; `null` when none did. */
  get deliveryError(): unknown {
    return this.#delivery.error;
  }

  /** The halt of a handler that has committed a part of a transaction; `null` when none did. */
  get partLeft(): Halt | null {
    const error = this.deliveryError;
    return error instanceof HaltError &&
      error.halt.code === 'sink_failed/partial_transaction'
      ? error.halt
      : null;
  }

  /** Copies tables beside the stream; see {@link CopyBesideStream.add}. */
  async snapshot(tables: readonly string[], begun: Set<string>): Promise<void> {
    await this.#copy.add(tables, begun);
  }

  /** Begins no delivery any more; resolves when the one that runs has settled, and an open batch is delivered or dropped. */
  async settle(openBatch: 'deliver' | 'drop'): Promise<void> {
    await this.#delivery.settle(openBatch);
  }

  /**
   * Lets the running delivery end, stores and confirms what is durable, and ends the copy.
   * Cuts the connection when that takes longer than `timeoutMs`. Never rejects.
   */
  async stop(timeoutMs: number): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    const copied = this.#copy.stop();
    if (this.#delivery.awaitsEnd) {
      this.#intake.closeAfterTransaction();
      // Nobody else watches the connection of a loop that stops.
      this.ended.catch(() => this.#intake.close());
    } else this.#intake.close();
    if (await within(this.settle('deliver'), timeoutMs)) {
      await within(
        this.#storeQuietly(),
        Math.max(0, deadline - performance.now()),
      );
      await this.#finish(Math.max(1, deadline - performance.now()));
    } else {
      const read = this.#delivery.awaitsEnd;
      this.abandon();
      // A handler that was told so undoes its part while its database is still there.
      if (read) await within(this.settle('drop'), FINISH_TIMEOUT_MS);
    }
    await this.#streamed?.close();
    await copied;
  }

  /** Ends a connection whose pipeline halts: the server is still told what is durable. Never rejects. */
  async halt(): Promise<void> {
    const copied = this.#copy.stop();
    this.#intake.close();
    await this.#finish(FINISH_TIMEOUT_MS);
    await this.#streamed?.close();
    await copied;
  }

  /** Cuts a connection that is lost. */
  abandon(): void {
    void this.#copy.stop();
    this.#intake.close();
    this.#guard?.stop();
    this.#reading.stop();
    this.#feedback.finish();
    this.#session.destroy();
    void this.#streamed?.close();
  }

  async #finish(timeoutMs: number): Promise<void> {
    this.#guard?.stop();
    this.#reading.stop();
    this.#feedback.finish();
    await this.#session.finish(Math.min(FINISH_TIMEOUT_MS, timeoutMs));
  }

  async #start(accepted: () => void): Promise<void> {
    const { sink, schema } = this.#subject;
    try {
      await refusingPlugin(this.#subject.capture, () =>
        this.#session.startStreaming(
          this.#plan.command,
          {
            frame: (bytes, start, end) => this.#frame(bytes, start, end),
            notice: (notice) => {
              const error = this.#notices.judge(notice);
              if (error !== null) this.#fail(error);
            },
          },
          () => {
            accepted();
            this.#gate.hold('starting');
            this.#feedback.start();
          },
        ),
      );
      await this.#streamed?.prepare();
      const position = await Promise.race([
        readCheckpoint(sink.checkpoint, this.#plan.context),
        this.ended,
      ]);
      this.positions.store(position.confirmedLsn ?? 0n);
      this.#watermark = watermarkOf(position);
      schema.resume(position, (message) => this.#subject.warning(message));
      this.#shapes.resume();
      await this.#copy.prepare(this.#plan, position, this.ended);
    } catch (error) {
      this.#intake.close();
      this.#feedback.stop();
      void this.#streamed?.close();
      throw error;
    }
  }

  #frame(bytes: Buffer, start: number, end: number): void {
    this.#framesFlowed = true;
    this.#feedback.heard();
    this.#intake.take(bytes, start, end);
    this.#backpressure.holdWhenFull();
  }

  #push(work: Work): void {
    // Nothing is taken in any more, so nothing is read either.
    if (work.kind === 'end') this.#gate.hold('ending');
    this.#delivery.push(work);
  }

  /** Nothing is read until the answer is there. */
  #ask<T>(question: (session: CommandSession) => Promise<T>): Promise<T> {
    return this.#gate.during('asking', () =>
      Promise.race([
        withSqlSession(this.#subject.target, question),
        this.ended,
      ]),
    );
  }

  /** A server that shuts down asks again and again, and waits until everything is durable. */
  #replyAsked(): void {
    this.#feedback.replyAsked();
    this.#delivery.closeBatch('stop');
  }

  #moved(): void {
    this.#feedback.moved();
    this.#subject.moved();
  }

  /** Whoever waits for it should not wait for the next store of its own accord, nor a crash undo it until then. */
  #storeSkipped(): void {
    const { storable } = this.positions;
    if (storable !== null && this.#subject.skipping?.awaits(storable) === true)
      this.#delivery.requestStore();
  }

  async #storeQuietly(): Promise<void> {
    try {
      await this.#delivery.store();
    } catch {
      // Positions without a transaction stay unconfirmed: the next start passes over them again.
    }
  }

  #fail(error: unknown): void {
    this.#intake.close();
    this.#fault.reject(error);
  }
}
