import { setTimeout as sleep } from 'node:timers/promises';
import { deferred } from '../model/deferred.js';
import { Halt, HaltError } from '../model/halt.js';
import type { Lsn } from '../model/lsn.js';
import { PlainReadingFault } from '../model/plain-reading-fault.js';
import { SchemaChangeFault } from '../model/schema-change-fault.js';
import { within } from '../model/within.js';
import { PipelineConnection } from './connection.js';
import type { ConnectionSubject, RunningCopy } from './subject.js';
import { askAboutChanges } from './schema.js';
import { captureSetOf } from '../server/capture/capture-set-of.js';
import {
  judgeError,
  type JudgedError,
  type Phase,
} from '../server/error-classes.js';
import {
  decide,
  type Fault,
  isFinal,
  NO_FAULTS,
  remember,
  type RetryDecision,
  type RetryHistory,
} from '../server/retry-policy.js';

/** What a loop tells. */
export interface LoopPorts {
  /** Rows are copied before the stream begins. */
  snapshotting(): void;
  streaming(connection: PipelineConnection): void;
  /** The connection was lost or refused; the next attempt follows after the delay. */
  reconnecting(reason: string, attempt: number, delayMs: number): void;
  /** Another process holds the slot, as the option `leaderElection` expects; it is looked again after the delay. */
  standby(reason: string, delayMs: number): void;
  /** The reason while a delivery of the lost connection still runs. */
  interrupted(reason: string): void;
}

/** How a loop ended: halted, or stopped as asked. */
export type LoopEnd = Halt | 'stopped';

/**
 * Keeps a pipeline connected from its start to its stop or halt: one connection after the other, and never a new one
 * before the delivery of the last has settled, since that one still moves the checkpoint.
 */
export class PipelineLoop {
  readonly #abort: AbortController;
  readonly #subject: ConnectionSubject;
  #connection: PipelineConnection | null = null;
  /** Ends when the server has given up what an attempt to connect had begun there. */
  #withdrawn: Promise<unknown> = Promise.resolve();
  /** The last that was made before a stream. */
  #copy: RunningCopy | null = null;
  #stopping = false;
  #unsettled: Promise<Halt | null>;
  #history: RetryHistory = NO_FAULTS;
  /** Commit position of the last transaction that the sink was given with success. */
  #deliveredThrough: Lsn = 0n;
  /** What follows this commit cannot be read while it runs; `null` when all can, as far as is known. */
  #plainBehind: Lsn | null = null;

  /**
   * @param unsettled - of an earlier loop
   */
  constructor(
    subject: Omit<ConnectionSubject, 'withdrawing' | 'copying'>,
    private readonly ports: LoopPorts,
    abort: AbortController,
    unsettled: Promise<Halt | null>,
  ) {
    this.#subject = {
      ...subject,
      delivered: (transaction, changes, ms) => {
        this.#deliveredThrough = transaction.commitLsn;
        subject.delivered(transaction, changes, ms);
      },
      withdrawing: (work) => {
        this.#withdrawn = work;
      },
      copying: (copy) => {
        this.#copy = copy;
        this.#unsettled = copy.ended.then(() => null);
        this.ports.snapshotting();
      },
    };
    this.#abort = abort;
    this.#unsettled = unsettled;
  }

  /** Resolves when no delivery runs any more, with a halt that nobody was told of yet. Never rejects. */
  get unsettled(): Promise<Halt | null> {
    return this.#unsettled;
  }

  get connection(): PipelineConnection | null {
    return this.#connection;
  }

  /** Runs until it is stopped or halts. Never rejects. */
  async run(): Promise<LoopEnd> {
    const left = await this.#unlessStopped(this.#unsettled);
    if (left !== null) return this.#tell(left);
    while (!this.#stopping) {
      const { error, phase, connection } = await this.#connectOnce();
      if (this.#stopping) break;
      const halt = await this.#afterFailure(error, phase, connection);
      if (halt !== null) return halt;
    }
    return 'stopped';
  }

  /** Ends the loop within `timeoutMs`. Never rejects. */
  async stop(timeoutMs: number): Promise<LoopEnd> {
    this.#stopping = true;
    const connection = this.#connection;
    if (connection !== null) {
      this.#settle(connection, 'deliver');
      await connection.stop(timeoutMs);
    } else {
      this.#copy?.stop();
      await within(this.#unsettled, timeoutMs);
    }
    this.#abort.abort();
    await within(this.#withdrawn, timeoutMs);
    const left = connection?.partLeft ?? null;
    return left === null ? 'stopped' : this.#tell(left);
  }

  #settle(
    connection: PipelineConnection,
    openBatch: 'deliver' | 'drop' = 'drop',
  ): void {
    this.#unsettled = connection
      .settle(openBatch)
      .then(() => connection.partLeft);
  }

  #tell(halt: Halt): Halt {
    this.#unsettled = Promise.resolve(null);
    return halt;
  }

  async #connectOnce(): Promise<{
    error: unknown;
    phase: Phase;
    connection: PipelineConnection | null;
  }> {
    let connection: PipelineConnection | null = null;
    let phase: Phase = 'login';
    try {
      connection = await PipelineConnection.open(
        this.#isPlain ? withoutStreaming(this.#subject) : this.#subject,
        (entered) => {
          phase = entered;
        },
      );
      if (this.#stopping) {
        connection.abandon();
        return { error: null, phase, connection };
      }
      this.#connection = connection;
      this.ports.streaming(connection);
      connection.begin();
      return { error: await connection.ended, phase, connection };
    } catch (error) {
      return { error, phase, connection };
    }
  }

  /** Closes what is left of a connection and waits for the next attempt, or says why there is none. */
  async #afterFailure(
    error: unknown,
    phase: Phase,
    connection: PipelineConnection | null,
  ): Promise<Halt | null> {
    if (error instanceof SchemaChangeFault && connection !== null)
      return this.#askSink(error, connection);
    if (error instanceof HaltError)
      return this.#haltWith(error.halt, connection);
    const judged = judgeError(error, phase);
    this.#considerPlain(error, judged);
    const final = isFinal(judged.class);
    if (!final) {
      const failed = await this.#closeLost(connection, judged);
      if (failed !== null || this.#stopping) return failed;
    }
    const decision = this.#decide({
      ...judged,
      phase,
      framesFlowed: connection?.framesFlowed === true,
      deliveredThrough: this.#deliveredThrough,
      at: performance.now(),
    });
    if (decision.kind === 'halt') {
      const { code, detail } = decision;
      return this.#haltWith(
        new Halt(code, { detail }),
        final ? connection : null,
      );
    }
    const { delayMs } = decision;
    if (decision.kind === 'standby') this.ports.standby(judged.reason, delayMs);
    else
      this.ports.reconnecting(judged.reason, this.#history.attempts, delayMs);
    await this.#unlessStopped(
      sleep(delayMs, undefined, { signal: this.#abort.signal }),
    );
    return null;
  }

  /** Whether running transactions are not asked for, though the option `streaming` is set. */
  get #isPlain(): boolean {
    return (
      this.#plainBehind !== null && this.#deliveredThrough <= this.#plainBehind
    );
  }

  /** A server that cannot decode a transaction while it runs may well decode it whole. */
  #considerPlain(error: unknown, judged: JudgedError): void {
    if (this.#subject.options.streaming === null) return;
    if (error instanceof PlainReadingFault || judged.class === 'undecodable') {
      if (!this.#isPlain)
        this.#subject.warning(
          `${judged.reason}: the next connection reads transactions when they have committed, as without the option streaming`,
        );
      this.#plainBehind = this.#deliveredThrough;
    }
  }

  #decide(fault: Fault): RetryDecision {
    this.#history = remember(this.#history, fault);
    return decide(this.#history, fault, this.#subject.options, Math.random());
  }

  async #haltWith(
    halt: Halt,
    connection: PipelineConnection | null,
  ): Promise<Halt> {
    if (connection !== null) this.#settle(connection);
    await connection?.halt();
    return halt;
  }

  /** Ends the connection in order, asks the sink while nothing runs, and goes on at once when it accepts. */
  async #askSink(
    fault: SchemaChangeFault,
    connection: PipelineConnection,
  ): Promise<Halt | null> {
    this.#connection = null;
    this.ports.interrupted(fault.message);
    const asking = connection
      .stop(this.#subject.options.drainTimeout)
      .then(() =>
        this.#stopping ? null : askAboutChanges(this.#subject, fault),
      );
    this.#unsettled = asking.then(() => null);
    const halt = await this.#unlessStopped(asking);
    // Whoever stops the pipeline meanwhile is asked again by the next start.
    return this.#stopping ? null : halt;
  }

  /** The delivery that ran when the connection was lost decides its own fate: durable, or a halt. */
  async #closeLost(
    connection: PipelineConnection | null,
    judged: JudgedError,
  ): Promise<Halt | null> {
    if (connection === null) return null;
    this.ports.interrupted(judged.reason);
    connection.abandon();
    this.#settle(connection);
    await this.#unlessStopped(this.#unsettled);
    this.#connection = null;
    return connection.deliveryError instanceof HaltError
      ? this.#tell(connection.deliveryError.halt)
      : null;
  }

  /** Waits for the work, or until the loop is stopped; `null` then, and when the work fails. */
  async #unlessStopped<T>(work: Promise<T>): Promise<T | null> {
    const { signal } = this.#abort;
    const stopped = deferred<null>();
    const stop = (): void => stopped.resolve(null);
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    try {
      return await Promise.race([work, stopped.promise]);
    } catch {
      return null;
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }
}

/** Reads transactions when they have committed. */
function withoutStreaming(subject: ConnectionSubject): ConnectionSubject {
  const options = { ...subject.options, streaming: null };
  return { ...subject, options, capture: captureSetOf(options) };
}
