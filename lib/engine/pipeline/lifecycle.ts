import type { AsyncResource } from 'node:async_hooks';
import { type Halt, HaltError } from '../model/halt.js';
import { within } from '../model/within.js';
import type { LoopEnd } from './loop.js';
import type { PipelineRecord } from './record.js';
import type { PipelineRun } from './run.js';
import type { Skipping } from './skipping.js';
import { PipelineStateError } from './state-error.js';
import type { PipelineWaiters } from './waiters.js';

/** What starting and stopping asks of a pipeline. */
export interface LifecycleSubject {
  readonly pipeline: string;
  /** Milliseconds that the running delivery has when it is asked to stop. */
  readonly drainTimeout: number;
  /** The context in which everything runs. */
  readonly root: AsyncResource;
  readonly record: PipelineRecord;
  readonly waiters: PipelineWaiters;
  /**
   * Makes a start.
   *
   * @param unsettled - see {@link PipelineRun.settle}: that of the starts before
   */
  make(skipping: Skipping | null, unsettled: Promise<Halt | null>): PipelineRun;
}

/** Starts and stops a pipeline: one run at a time, and a new one only when the last has ended. */
export class PipelineLifecycle {
  readonly #subject: LifecycleSubject;
  #running: PipelineRun | null = null;
  /** Starts that have something open beside their connection: the last one, and those whose deliveries outlived them. */
  readonly #open = new Set<PipelineRun>();
  /** The last start, which may have ended. */
  #last: PipelineRun | null = null;
  #stopping: Promise<void> | null = null;
  /** Was started after it was asked to stop and before it had stopped. */
  #startAgain = false;
  /** See {@link PipelineRun.settle}: that of the last start that has ended. */
  #unsettled: Promise<Halt | null> = Promise.resolve(null);
  /** The wait for a delivery that outlived a halt; one for all that stop the halted pipeline. */
  #outlived: Promise<unknown> | null = null;

  constructor(subject: LifecycleSubject) {
    this.#subject = subject;
  }

  /** `null` before the first start, and after a stop or a halt. */
  get running(): PipelineRun | null {
    return this.#running;
  }

  /** It was asked to stop and has not stopped. */
  get stopping(): boolean {
    return this.#stopping !== null;
  }

  /** Starts, or does so when it has stopped if it is asked to stop; does nothing while it runs. */
  start(): void {
    if (this.#stopping !== null) {
      this.#startAgain = true;
      return;
    }
    if (this.#running === null) this.begin(null);
  }

  /** Starts what does not run. */
  begin(skipping: Skipping | null): void {
    const { root, record } = this.#subject;
    this.#startAgain = false;
    const run = this.#subject.make(skipping, this.#unsettled);
    this.#running = run;
    this.#last = run;
    this.#open.add(run);
    this.#outlived = null;
    record.connecting();
    void root
      .runInAsyncScope(() => run.run())
      .then((end) => {
        if (end !== 'stopped') this.#ended(run, end);
      });
  }

  /** Asks it to stop; resolves when it has. Never rejects. */
  stop(): Promise<void> {
    const { root, record, drainTimeout } = this.#subject;
    this.#startAgain = false;
    const last = this.#last;
    last?.skipping?.stopped(this.#wasStopped());
    const run = this.#running;
    if (run !== null) {
      // The last store of positions must not join a transaction of the caller's context.
      this.#stopping ??= root.runInAsyncScope(() => this.#stop(run));
    } else if (record.halt !== null) {
      this.#outlived ??= within(this.#unsettled, drainTimeout).then(() =>
        this.#close(),
      );
    }
    return this.#stopped();
  }

  async #stopped(): Promise<void> {
    await this.#stopping;
    await this.#outlived;
  }

  async #stop(run: PipelineRun): Promise<void> {
    const { record, drainTimeout } = this.#subject;
    record.draining();
    const end = await run.stop(drainTimeout);
    await this.#close();
    if (end === 'stopped' && run.connection?.deliveryError) {
      record.warning(
        'the delivery that ran while stopping failed; what it did not apply comes again at the next start',
      );
    }
    this.#ended(run, end);
    this.#stopping = null;
    if (this.#startAgain && end === 'stopped') this.start();
  }

  #ended(run: PipelineRun, end: LoopEnd): void {
    if (this.#running !== run) return;
    const { record, waiters } = this.#subject;
    this.#running = null;
    const open = [...this.#open];
    this.#unsettled = run.settle().then(async (halt) => {
      await this.#close(open);
      return halt;
    });
    if (end === 'stopped') {
      record.stopped();
      // Who started it again meanwhile waits for the new stream.
      if (this.#startAgain) return;
      waiters.reject(this.#wasStopped());
    } else {
      const error = new HaltError(end);
      // Before anybody is told: who hears it may start the pipeline again, and wait for that.
      waiters.reject(error);
      run.skipping?.halted(error);
      record.halted(end);
    }
  }

  async #close(runs = [...this.#open]): Promise<void> {
    for (const run of runs) this.#open.delete(run);
    await Promise.all(runs.map((run) => run.close()));
  }

  #wasStopped(): PipelineStateError {
    return new PipelineStateError(
      `Pipeline "${this.#subject.pipeline}" was stopped.`,
    );
  }
}
