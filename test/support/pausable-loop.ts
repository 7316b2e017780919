import { setTimeout as sleep } from 'node:timers/promises';
import { waitFor } from './wait-for.js';

const PATIENCE_MS = 30_000;

/** Calls a function with 1, 2, 3 …, one call after the other, while it is not paused. It begins paused. */
export class PausableLoop {
  readonly #done: Promise<void>;
  #n = 0;
  #wanted: 'run' | 'pause' | 'stop' = 'pause';
  #paused = false;

  /**
   * @param step - must not reject
   * @param rest - milliseconds between two calls
   */
  constructor(
    private readonly step: (n: number) => Promise<void>,
    private readonly rest: number,
  ) {
    this.#done = this.#run();
  }

  resume(): void {
    this.#wanted = 'run';
    this.#paused = false;
  }

  /** Resolves when no call runs. */
  async pause(): Promise<void> {
    this.#wanted = 'pause';
    await waitFor(() => this.#paused, {
      message: 'the load to pause',
      timeout: PATIENCE_MS,
    });
  }

  /** Resolves when no call will follow. */
  async stop(): Promise<void> {
    this.#wanted = 'stop';
    await this.#done;
  }

  /** Goes on with the next multiple of a number. */
  skipTo(multiple: number): void {
    this.#n += multiple - 1 - (this.#n % multiple);
  }

  /** One more call, while it is paused. */
  async once(): Promise<void> {
    this.#n += 1;
    await this.step(this.#n);
  }

  async #run(): Promise<void> {
    while (this.#wanted !== 'stop') {
      if (this.#wanted === 'pause') this.#paused = true;
      else await this.once();
      await sleep(this.rest);
    }
  }
}
