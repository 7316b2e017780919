import type { CopyExamination } from './examine-copies.js';
import type { Examination } from './examine.js';
import { type Mode, type ModeName, MODES, type Point } from './modes.js';

/** What a mode has shown. */
export interface ModeReport extends Examination, CopyExamination {
  readonly kills: number;
  /** Kills that met a copy under way. */
  readonly killsInCopies: number;
  /** Copies of everything that came to their end, each of which was compared with the source. */
  readonly copies: number;
  /** Files of running transactions on disk that nobody has removed. */
  readonly filesLeft: number;
  /** Kills that met such files. */
  readonly killsWithFiles: number;
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

/** Of the kills of a mode with a snapshot. */
const IN_COPIES = 0.25;

/** Points at which a transaction that is kept on disk has a file. */
const WITH_FILES: readonly Point[] = [
  'while it is held',
  'while it is written to disk',
];

const MUST_BE_ZERO = [
  'lost',
  'differences',
  'repeatedAfterStop',
  'begunAgain',
  'filesLeft',
  'failed',
  'orphans',
] as const satisfies readonly (keyof ModeReport)[];

/** What a mode has not kept of its promise, and what the run has not shown; empty when all is well. */
export function complaints(name: ModeName, report: ModeReport): string[] {
  const mode: Mode = MODES[name];
  const again = killsAt(mode.repeats, report);
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
    ...copyComplaints(mode, report),
    ...fileComplaints(mode, report),
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

function copyComplaints(mode: Mode, report: ModeReport): string[] {
  const { snapshot, mayCopyAgain, chunkRepeats } = mode;
  const again = killsAt(chunkRepeats, report);
  return [
    ...(mayCopyAgain === 0 && report.copiedTwice > 0
      ? [`copiedTwice is ${report.copiedTwice}`]
      : []),
    ...(report.maxChunksPerCrash > mayCopyAgain
      ? [
          `maxChunksPerCrash is ${report.maxChunksPerCrash}, above ${mayCopyAgain}`,
        ]
      : []),
    ...(report.chunksAgain < again
      ? [
          `chunksAgain is ${report.chunksAgain}, below ${again} kills at points where a chunk has to come again`,
        ]
      : []),
    ...(snapshot !== null && report.killsInCopies < report.kills * IN_COPIES
      ? [`only ${report.killsInCopies} of ${report.kills} kills met a copy`]
      : []),
  ];
}

function fileComplaints({ streaming }: Mode, report: ModeReport): string[] {
  const least = killsAt(WITH_FILES, report);
  return streaming === 'on disk' && report.killsWithFiles < least
    ? [
        `killsWithFiles is ${report.killsWithFiles}, below ${least} kills at points where there are files`,
      ]
    : [];
}

function killsAt(points: readonly Point[], report: ModeReport): number {
  return points.reduce((sum, point) => sum + (report.points[point] ?? 0), 0);
}
