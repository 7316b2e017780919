const LETTERS = 36;
const CHUNK_LETTERS = 5;
const CHUNK_VALUES = LETTERS ** CHUNK_LETTERS;

/** Random numbers that are the same for the same seed (the algorithm Mulberry32). */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** A number from 0 to 1, the latter excluded. */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** An integer from 0 to `limit`, the latter excluded. */
  below(limit: number): number {
    return Math.floor(this.fraction() * limit);
  }

  /** Whether something of this probability happens. */
  happens(probability: number): boolean {
    return this.fraction() < probability;
  }

  /** Letters and digits that do not compress. */
  text(length: number): string {
    let text = '';
    while (text.length < length) {
      const chunk = this.below(CHUNK_VALUES).toString(LETTERS);
      text += chunk.padStart(CHUNK_LETTERS, '0');
    }
    return text.slice(0, length);
  }
}
