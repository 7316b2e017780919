import type { Results } from './report.js';

/** A figure has to be on this side of a bound. */
export interface Target {
  readonly loads: readonly string[];
  readonly readers: readonly string[];
  readonly figure: string;
  readonly bound: number;
  readonly side: 'at least' | 'at most';
}

/** Says what was measured and is not as it has to be. What was not measured is not missed. */
export function missedTargets(
  results: Results,
  targets: readonly Target[],
): string[] {
  return targets.flatMap(({ loads, readers, figure, bound, side }) =>
    loads.flatMap((load) =>
      readers.flatMap((reader) => {
        const value = results.get(load)?.get(reader)?.[figure] ?? null;
        const isMissed =
          value !== null &&
          (side === 'at least' ? value < bound : value > bound);
        return isMissed
          ? [`${load}, ${reader}: ${figure} ${value}, and not ${side} ${bound}`]
          : [];
      }),
    ),
  );
}
