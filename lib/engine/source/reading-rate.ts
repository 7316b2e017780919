/** One second, so that a count over it is a rate. */
const WINDOW_MS = 1_000;

/** How fast a connection was read over the last second. */
export interface Rate {
  readonly readsPerSecond: number;
  /** 0 when nothing was read. */
  readonly bytesPerRead: number;
}

/** Counts reads over the last second: this window's, and the part of the window before that is still within it. */
export class ReadingRate {
  #since: number;
  #reads = 0;
  #bytes = 0;
  #readsBefore = 0;
  #bytesBefore = 0;

  /** @param now - milliseconds of the clock that all calls use */
  constructor(now: number) {
    this.#since = now;
  }

  note(bytes: number, now: number): void {
    this.#roll(now);
    this.#reads += 1;
    this.#bytes += bytes;
  }

  over(now: number): Rate {
    this.#roll(now);
    const share = 1 - (now - this.#since) / WINDOW_MS;
    const reads = this.#reads + this.#readsBefore * share;
    const bytes = this.#bytes + this.#bytesBefore * share;
    return {
      readsPerSecond: Math.round(reads),
      bytesPerRead: reads === 0 ? 0 : Math.round(bytes / reads),
    };
  }

  #roll(now: number): void {
    const windows = Math.floor((now - this.#since) / WINDOW_MS);
    if (windows < 1) return;
    this.#readsBefore = windows === 1 ? this.#reads : 0;
    this.#bytesBefore = windows === 1 ? this.#bytes : 0;
    this.#reads = 0;
    this.#bytes = 0;
    this.#since += windows * WINDOW_MS;
  }
}
