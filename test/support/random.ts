/**
 * Numbers that depend on the seed alone.
 *
 * @see {@link https://github.com/cprosche/mulberry32 | mulberry32}
 */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 0;
  }

  /** From 0 to below 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from 0 to below a limit. */
  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  /** One of the items. */
  of<const T>(items: readonly [T, ...T[]]): T {
    return items[this.below(items.length)] ?? items[0];
  }

  /** The same items in another order. */
  shuffled<T>(items: readonly T[]): T[] {
    return items
      .map((item) => ({ item, place: this.next() }))
      .toSorted((a, b) => a.place - b.place)
      .map(({ item }) => item);
  }
}

/** Deals items in a random order, all of them before one comes again. */
export class Deck<T> {
  readonly #items: readonly T[];
  readonly #random: Random;
  #left: T[] = [];

  constructor(items: readonly [T, ...T[]], random: Random) {
    this.#items = items;
    this.#random = random;
  }

  deal(): T {
    if (this.#left.length === 0)
      this.#left = this.#random.shuffled(this.#items);
    const item = this.#left.pop();
    if (item === undefined) throw new Error('The deck is empty.');
    return item;
  }
}
