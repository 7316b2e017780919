import { inject } from './inject.js';
import type { Fault, Round } from './plan.js';
import type { Comparison, Stage } from './stage.js';

/** What has come of the rounds so far. */
export interface Played {
  readonly rounds: number;
  /** Why the last round failed; `null` when none did. */
  readonly failure: string | null;
  /** After the last round. */
  readonly comparison: Comparison;
  readonly faults: Readonly<Record<string, number>>;
}

/** Written between a fault and the wait for the mirror, so that it has something to catch up with. */
const MOVES = 15;

/** Plays one round after the other, until one fails. */
export async function play(
  stage: Stage,
  plan: readonly Round[],
  tell: (line: string) => void,
): Promise<Played> {
  const faults: Record<string, number> = {};
  let rounds = 0;
  let failure: string | null = null;
  for (const round of plan) {
    if (failure !== null) break;
    rounds += 1;
    const start = performance.now();
    failure = await failureOf(stage, round);
    for (const { kind } of round) faults[kind] = (faults[kind] ?? 0) + 1;
    const seconds = ((performance.now() - start) / 1000).toFixed(1);
    const verdict = failure === null ? 'ok' : 'FAILED';
    tell(`${rounds}/${plan.length} ${kinds(round)}: ${verdict}, ${seconds} s`);
    if (failure !== null) tell(failure);
  }
  return { rounds, failure, comparison: await stage.compare(), faults };
}

/** Injects the faults of a round under load, and says what is wrong afterwards. */
async function failureOf(stage: Stage, round: Round): Promise<string | null> {
  try {
    stage.load.resume();
    for (const fault of round) await inject(stage, fault);
    await stage.load.moves(MOVES);
    await stage.load.pause();
    await stage.caughtUp();
    const { transactions, ...difference } = await stage.compare();
    return Object.values(difference).some((count) => count !== 0)
      ? `after ${transactions} transactions: ${JSON.stringify(difference)}`
      : null;
  } catch (error) {
    stage.proxy.restore();
    await stage.load.pause();
    const why = error instanceof Error ? error.message : 'no error';
    return `${why}\n${await stage.describe()}`;
  }
}

function kinds(round: readonly Fault[]): string {
  return round.map(({ kind }) => kind).join(', ');
}
