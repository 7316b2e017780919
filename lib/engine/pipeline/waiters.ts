import { deferred, type Deferred } from '../model/deferred.js';
import type { Lsn } from '../model/lsn.js';

/** Those who wait until a pipeline streams, or until it has caught up. */
export class PipelineWaiters {
  #streaming: Deferred<void> | null = null;
  readonly #positions = new Map<Deferred<void>, Lsn>();

  streaming(): Promise<void> {
    this.#streaming ??= deferred();
    return this.#streaming.promise;
  }

  reaching(position: Lsn): Promise<void> {
    const waiter = deferred<void>();
    this.#positions.set(waiter, position);
    return waiter.promise;
  }

  noteStreaming(): void {
    this.#streaming?.resolve();
    this.#streaming = null;
  }

  noteDurable(position: Lsn): void {
    for (const [waiter, wanted] of this.#positions) {
      if (wanted > position) continue;
      waiter.resolve();
      this.#positions.delete(waiter);
    }
  }

  /** Nothing that anybody waits for will come. */
  reject(reason: Error): void {
    this.#streaming?.reject(reason);
    this.#streaming = null;
    for (const waiter of this.#positions.keys()) waiter.reject(reason);
    this.#positions.clear();
  }
}
