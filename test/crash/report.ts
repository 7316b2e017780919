import type { Examination } from './examine.js';
import { type Mode, type ModeName, MODES } from './modes.js';

/** What a mode has shown. */
export interface ModeReport extends Examination {
  readonly kills: number;
  /** Deliveries that a clean stop had repeated. */
  readonly repeatedAfterStop: number;
  /** Points, and the random moments, to how often a process was killed there. */
  readonly points: Readonly<Record<string, number>>;
  /** Whether a pipeline halted, or an application did not do what it had to. */
  readonly failed: number;
  /** Applications that were left running. */
  readonly orphans: number;
  readonly seconds: number;
}

const MUST_BE_ZERO = [
  'lost',
  'differences',
  'repeatedAfterStop',
  'failed',
  'orphans',
] as const satisfies readonly (keyof ModeReport)[];

/** What a mode has not kept of its promise, and what the run has not shown; empty when all is well. */
export function complaints(name: ModeName, report: ModeReport): string[] {
  const mode: Mode = MODES[name];
  const again = mode.repeats.reduce(
    (sum, point) => sum + (report.points[point] ?? 0),
    0,
  );
  return [
    ...MUST_BE_ZERO.filter((figure) => report[figure] !== 0).map(
      (figure) => `${figure} is ${report[figure]}`,
    ),
    ...(report.maxDuplicatesPerCrash > mode.mayRepeat
      ? [
          `maxDuplicatesPerCrash is ${report.maxDuplicatesPerCrash}, above ${mode.mayRepeat}`,
        ]
      : []),
    ...(mode.mayRepeat === 0 && report.appliedTwice > 0
      ? [`appliedTwice is ${report.appliedTwice}`]
      : []),
    ...(report.redelivered < again
      ? [
          `redelivered is ${report.redelivered}, below ${again} kills at points where something has to come again`,
        ]
      : []),
    ...mode.points
      .filter((point) => report.points[point] === undefined)
      .map((point) => `nothing was killed ${point}`),
  ];
}
