import { isDeepStrictEqual } from 'node:util';
import type { Step } from './steps.js';

/** How what tells a message apart begins. */
const MESSAGE = 'message ';

/** So many changes of the same kind, one behind the other. */
export interface Run {
  readonly of: string;
  readonly count: number;
}

/** Keeps what a sink has to get, from what sessions do: of each transaction that commits, in their order. */
export class Expected {
  readonly transactions: (readonly Run[])[] = [];
  readonly #sessions = new Map<number, Level[]>();

  /** @param rows - changed by a statement, as the server says */
  done(step: Exclude<Step, { kind: 'crash' | 'arrival' }>, rows: number): void {
    const levels = this.#sessions.get(step.session) ?? [];
    switch (step.kind) {
      case 'begin':
        this.#sessions.set(step.session, [{ name: null, runs: [] }]);
        return;
      case 'statement':
        levels.at(-1)?.runs.push(
          ...step.traces.map((trace) => ({
            of: trace.of,
            count: trace.rows ?? rows,
          })),
        );
        return;
      case 'savepoint':
        levels.push({ name: step.name, runs: [] });
        return;
      case 'release': {
        const inside = levels.splice(placeOf(levels, step.name));
        levels.at(-1)?.runs.push(...inside.flatMap(({ runs }) => runs));
        return;
      }
      case 'rollback to':
        levels.splice(placeOf(levels, step.name));
        levels.push({ name: step.name, runs: [] });
        return;
      case 'commit': {
        const runs = joined(levels.flatMap((level) => level.runs));
        if (runs.length > 0) this.transactions.push(runs);
        this.#sessions.delete(step.session);
        return;
      }
      case 'rollback':
        this.#sessions.delete(step.session);
    }
  }
}

/** What was done since a savepoint, or since the beginning. */
interface Level {
  readonly name: string | null;
  readonly runs: Run[];
}

function placeOf(levels: readonly Level[], name: string): number {
  return levels.findIndex((level) => level.name === name);
}

/** The same behind each other as one, and nothing of none. */
export function joined(runs: readonly Run[]): readonly Run[] {
  const all: Run[] = [];
  for (const run of runs) {
    if (run.count === 0) continue;
    const last = all.at(-1);
    if (last?.of === run.of)
      all[all.length - 1] = { of: run.of, count: last.count + run.count };
    else all.push(run);
  }
  return all;
}

/**
 * Whether this is what was done. The server sorts a message by where it ends, which is where the next change begins: when that is of another
 * savepoint, it may send the change first, whether it streams or not.
 */
export function isAsDone(
  delivered: readonly Run[],
  done: readonly Run[],
): boolean {
  const [one, other] = [partsOf(delivered), partsOf(done)];
  return (
    isDeepStrictEqual(one.changes, other.changes) &&
    one.messages.length === other.messages.length &&
    one.messages.every(({ of, before }, at) => {
      const message = other.messages[at];
      return (
        message?.of === of &&
        (before === message.before || before === message.before + 1)
      );
    })
  );
}

/** Changes, and messages with the number of changes before each. */
function partsOf(runs: readonly Run[]): {
  readonly changes: readonly Run[];
  readonly messages: readonly {
    readonly of: string;
    readonly before: number;
  }[];
} {
  const changes: Run[] = [];
  const messages: { of: string; before: number }[] = [];
  let before = 0;
  for (const run of runs) {
    if (run.of.startsWith(MESSAGE)) messages.push({ of: run.of, before });
    else {
      changes.push(run);
      before += run.count;
    }
  }
  return { changes: joined(changes), messages };
}
