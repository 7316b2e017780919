import type { Pipeline } from '../engine/pipeline.js';

const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * Does what the option `onHalt` says. `exit` ends the process: in order when shutdown hooks are enabled, else at once. `stay` keeps it: a
 * worker without a server would otherwise end by itself, as if it had done its work.
 */
export class OnHalt {
  #ending = false;
  readonly #keeping = new Map<Pipeline, NodeJS.Timeout>();

  watch(pipelines: readonly Pipeline[]): void {
    const longestDrain = Math.max(
      ...pipelines.map(({ options }) => options.drainTimeout),
    );
    for (const pipeline of pipelines) {
      if (pipeline.options.onHalt === 'exit') {
        pipeline.on('halt', () => this.#end(longestDrain));
      } else {
        pipeline.on('state', ({ to }) => {
          if (to === 'halted') this.#keep(pipeline);
          else this.#release(pipeline);
        });
      }
    }
  }

  /** Keeps the process no longer. */
  release(): void {
    for (const pipeline of this.#keeping.keys()) this.#release(pipeline);
  }

  #keep(pipeline: Pipeline): void {
    const timer = setInterval(() => {}, LONGEST_TIMER_MS);
    this.#keeping.set(pipeline, timer);
  }

  #release(pipeline: Pipeline): void {
    clearInterval(this.#keeping.get(pipeline));
    this.#keeping.delete(pipeline);
  }

  #end(timeoutMs: number): void {
    if (this.#ending) return;
    this.#ending = true;
    process.exitCode = 1;
    // Who ends the process after its hooks may do so with another code.
    process.once('exit', () => {
      process.exitCode = 1;
    });
    if (process.listenerCount('SIGTERM') === 0) process.exit();
    // Held until the signal has arrived: a process with nothing else to do would end before its hooks run.
    const timer = setTimeout(() => process.exit(), timeoutMs);
    let received = 0;
    process.on('SIGTERM', () => {
      timer.unref();
      received += 1;
      // Nest sends the signal again when its hooks have run, and a process that ends by it has no exit code.
      if (received > 1) process.exit();
    });
    process.kill(process.pid, 'SIGTERM');
  }
}
