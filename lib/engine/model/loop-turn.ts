/** Timers and other sockets have to wait about as long at most. */
const LONGEST_TURN_MS = 8;

/**
 * Tells work that waits for nothing but promises when to let the event loop turn. Of several that run in one turn each has its own: they
 * begin to count when they are first asked in it.
 */
export class LoopTurn {
  #began: number | null = null;

  /** @param now - the time by `performance.now()` */
  isLong(now = performance.now()): boolean {
    if (this.#began !== null) return now - this.#began > LONGEST_TURN_MS;
    this.#began = now;
    setImmediate(() => {
      this.#began = null;
    });
    return false;
  }
}
