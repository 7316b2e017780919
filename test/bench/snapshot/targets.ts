import type { Target } from '../targets.js';

const MODES = ['initial-text', 'initial-exact', 'incremental'];

/** What copying has to reach, with loads at their full size. */
export const SNAPSHOT_TARGETS: readonly Target[] = [
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
