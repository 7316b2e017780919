import type { PageQueue } from './page-queue.js';
import type { Page } from './raw-row.js';

/**
 * The pages of a queue. It is no generator function, because one keeps the page that it gave last while it makes the next: with large
 * rows, that much more lives until the next garbage collection.
 */
export class Pages implements AsyncIterableIterator<Page, void> {
  readonly #queue: Pick<PageQueue, 'next'>;
  #end: (() => void) | null;

  /** @param end - runs once: behind the last page, after an error, or when the consumer leaves */
  constructor(queue: Pick<PageQueue, 'next'>, end: () => void) {
    this.#queue = queue;
    this.#end = end;
  }

  async next(): Promise<IteratorResult<Page, void>> {
    if (this.#end !== null) {
      try {
        const value = await this.#queue.next();
        if (value !== null) return { value, done: false };
      } catch (error) {
        this.#finish();
        throw error;
      }
    }
    return this.return();
  }

  async return(): Promise<IteratorReturnResult<void>> {
    this.#finish();
    return { value: undefined, done: true };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #finish(): void {
    this.#end?.();
    this.#end = null;
  }
}
