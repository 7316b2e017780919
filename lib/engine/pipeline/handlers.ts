import { AsyncLocalStorage } from 'node:async_hooks';

/** One call of a handler of the sink. */
export interface HandlerCall {
  readonly running: boolean;
}

/** Tells whether code is called by a handler of the sink. What a handler starts belongs to it too, and may outlive it. */
export class HandlerScope {
  readonly #calls = new AsyncLocalStorage<{ running: boolean }>();

  /** Whether the caller is part of a handler that still runs. */
  get inside(): boolean {
    return this.current?.running === true;
  }

  /** The call that the caller is part of, which may have ended; `null` when it is part of none. */
  get current(): HandlerCall | null {
    return this.#calls.getStore() ?? null;
  }

  async run(handler: () => Promise<void>): Promise<void> {
    const call = { running: true };
    try {
      await this.#calls.run(call, handler);
    } finally {
      call.running = false;
    }
  }
}
