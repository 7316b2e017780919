/** A value of the checkpoint row, as this process knows it. What it wrote last may have been rolled back since. */
export class KnownValue<T> {
  #last: T;
  #before: T;

  /** @param stored - as it was read */
  constructor(stored: T) {
    this.#last = stored;
    this.#before = stored;
  }

  /** What this process has read or written last. */
  get last(): T {
    return this.#last;
  }

  /** What the row holds when this value is to be written: what it replaces, also when it is written a second time. */
  before(value: T): T {
    return value === this.#last ? this.#before : this.#last;
  }

  wrote(value: T): void {
    this.#before = this.before(value);
    this.#last = value;
  }

  /**
   * It was read again: either what was written is there, or it was rolled back.
   *
   * @returns false when it is neither, so that another process has written it
   */
  settle(stored: T): boolean {
    if (stored !== this.#last && stored !== this.#before) return false;
    this.#last = stored;
    this.#before = stored;
    return true;
  }
}
