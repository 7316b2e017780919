import type { Findings } from './findings.js';
import type { Comparison } from './stage.js';

/** What a run has found. */
export interface FaultsReport extends Comparison, Findings {
  /** Rounds that were played. */
  readonly rounds: number;
  /** Rounds after which the mirror did not catch up, or was not the same. */
  readonly failedRounds: number;
  /** Kinds of faults to how often they were injected. */
  readonly faults: Readonly<Record<string, number>>;
  /** Processes of the application. */
  readonly applications: number;
  /** Connections that they have lost, or tried in vain. */
  readonly reconnects: number;
  readonly seed: number;
  readonly seconds: number;
}

const MUST_BE_ZERO = [
  'missing',
  'extra',
  'different',
  'appliedTwice',
  'unhandled',
  'openHandles',
  'failedRounds',
] as const satisfies readonly (keyof FaultsReport)[];

/** What is not as it must be; empty when all is well. */
export function complaints(report: FaultsReport): string[] {
  return MUST_BE_ZERO.filter((name) => report[name] !== 0).map(
    (name) => `${name} is ${report[name]}`,
  );
}
