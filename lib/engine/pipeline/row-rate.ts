const SLOT_MS = 1_000;
/** Whole seconds over which the rate is told, besides the one that runs. */
const SLOTS = 10;

/** Counts rows over the last ten seconds: long enough to even out pages, short enough to follow a sink that becomes slow. */
export class RowRate {
  readonly #began: number;
  /** Rows of the last seconds; the one that runs comes last. */
  readonly #seconds: number[] = [0];
  /** When the second that runs began. */
  #since: number;

  /** @param now - milliseconds of the clock that all calls use */
  constructor(now: number) {
    this.#began = now;
    this.#since = now;
  }

  note(rows: number, now: number): void {
    this.#roll(now);
    this.#seconds[this.#seconds.length - 1] =
      (this.#seconds.at(-1) ?? 0) + rows;
  }

  /** Rows a second. */
  over(now: number): number {
    this.#roll(now);
    const rows = this.#seconds.reduce((sum, each) => sum + each, 0);
    const window =
      (this.#seconds.length - 1) * SLOT_MS + Math.max(0, now - this.#since);
    // The first page comes at once, and says nothing of the next.
    const measured = Math.max(Math.min(window, now - this.#began), SLOT_MS);
    return Math.round((rows / measured) * 1_000);
  }

  #roll(now: number): void {
    const passed = Math.floor((now - this.#since) / SLOT_MS);
    if (passed < 1) return;
    for (let second = Math.min(passed, SLOTS + 1); second > 0; second -= 1)
      this.#seconds.push(0);
    this.#seconds.splice(0, this.#seconds.length - SLOTS - 1);
    this.#since += passed * SLOT_MS;
  }
}
