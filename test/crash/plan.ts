import { Deck, Random } from '../support/random.js';
import type { Point } from './modes.js';

/** Where a process is killed. */
export type Place = Point | 'at a random moment';

/** One kill. */
export interface Kill {
  readonly place: Place;
  /** From 0 to below 1: how late the random moment is, or how often the point is passed before. */
  readonly delay: number;
}

/** So many random moments to one of each point. */
const RANDOM_MOMENTS = Array.from(
  { length: 3 },
  () => 'at a random moment' as const,
);

/** The kills of a mode, which depend on the seed alone. The first ones meet every point, and a random moment. */
export function planKills(
  seed: number,
  points: readonly [Point, ...Point[]],
  kills: number,
): Kill[] {
  const random = new Random(seed);
  const first = random.shuffled<Place>([...points, 'at a random moment']);
  const deck = new Deck<Place>([...points, ...RANDOM_MOMENTS], random);
  const count = Math.max(kills, first.length);
  return Array.from({ length: count }, (_, index) => ({
    place: first[index] ?? deck.deal(),
    delay: random.next(),
  }));
}
