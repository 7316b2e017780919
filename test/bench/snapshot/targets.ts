import type { Results } from '../report.js';

/** A figure has to be on this side of a bound. */
interface Target {
  readonly loads: readonly string[];
  readonly readers: readonly string[];
  readonly figure: string;
  readonly bound: number;
  readonly side: 'at least' | 'at most';
}

const MODES = ['initial-text', 'initial-exact', 'incremental'];

/** What copying has to reach, with loads at their full size. */
const TARGETS: readonly Target[] = [
  rate('initial-text', 0.7),
  rate('initial-exact', 0.5),
  rate('incremental', 0.4),
  {
    loads: ['rows2M', 'large'],
    readers: MODES,
    figure: 'aboveIdleMb',
    bound: 100,
    side: 'at most',
  },
  // Proportional, with what two cores that others may use leave in doubt.
  {
    loads: ['rows2M'],
    readers: MODES,
    figure: 'growth',
    bound: 1.2,
    side: 'at most',
  },
];

function rate(reader: string, bound: number): Target {
  return {
    loads: ['rows2M'],
    readers: [reader],
    figure: 'ofCopy',
    bound,
    side: 'at least',
  };
}

/** Says what was measured and is not as it has to be. What was not measured is not missed. */
export function missedTargets(results: Results): string[] {
  return TARGETS.flatMap(({ loads, readers, figure, bound, side }) =>
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
