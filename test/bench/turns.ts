import { present } from '../support/present.js';
import { type Figures, medians } from './report.js';

/** One load, which readers read in turns. */
export interface Contest<R, T> {
  readonly load: string;
  readonly readers: readonly R[];
  readonly rounds: number;
  /** One turn. */
  read(reader: R): Promise<T>;
  /** What is printed of a turn. */
  describe(turn: T): string;
  /** What the turns of a round have measured. They may be compared with each other: the machine may be another one in the next round. */
  measured(round: ReadonlyMap<string, T>): ReadonlyMap<string, Figures>;
}

/** What has come of a load. */
export interface Outcome {
  /** The medians of each reader. */
  readonly figures: Map<string, Figures>;
  readonly failures: readonly string[];
}

/** In every round each reader has one turn, and a round begins one reader further than the one before. */
export async function takeTurns<R extends { readonly name: string }, T>(
  contest: Contest<R, T>,
): Promise<Outcome> {
  const { load, readers, rounds } = contest;
  const width = Math.max(...readers.map(({ name }) => name.length));
  const runs = new Map<string, Figures[]>();
  const failures: string[] = [];
  for (let round = 0; round < rounds; round++) {
    const turns = new Map<string, T>();
    for (const [index] of readers.entries()) {
      const reader = present(readers[(index + round) % readers.length]);
      const label = `  round ${round + 1}  ${reader.name.padEnd(width)} `;
      try {
        const turn = await contest.read(reader);
        turns.set(reader.name, turn);
        console.log(`${label} ${contest.describe(turn)}`);
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        failures.push(`${load}, ${reader.name}: ${reason}`);
        console.log(`${label} FAILED`);
      }
    }
    for (const [name, figures] of contest.measured(turns))
      runs.set(name, [...(runs.get(name) ?? []), figures]);
  }
  const figures = readers.flatMap(({ name }): [string, Figures][] => {
    const measured = runs.get(name);
    return measured === undefined ? [] : [[name, medians(measured)]];
  });
  return { figures: new Map(figures), failures };
}
