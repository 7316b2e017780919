import { Random } from '../random.js';
import { TableLocks } from './locks.js';
import { Place, type Statement } from './place.js';
import {
  insertFew,
  insertMany,
  insertWide,
  move,
  put,
  remove,
  subtransactions,
  tell,
  tellOutside,
  update,
} from './row-statements.js';
import type { Crash, Schedule, ScheduledTable, Step } from './steps.js';
import { alter, truncate } from './table-statements.js';

/** Each as often as it comes, next to the others. */
const STATEMENTS = weighted<(place: Place) => Statement | null>([
  [insertMany, 7],
  [insertFew, 5],
  [insertWide, 1],
  [update, 4],
  [move, 1],
  [remove, 2],
  [put, 1],
  [subtransactions, 1],
  [tell, 2],
  [tellOutside, 1],
  [truncate, 1],
  [alter, 2],
]);

/** What a session does next that has begun a transaction. */
const MOVES = weighted([
  ['statement', 10],
  ['savepoint', 3],
  ['release', 1],
  ['rollback to', 2],
  ['commit', 2],
  ['rollback', 0.5],
] as const);

const MOST_SAVEPOINTS = 4;

interface Session {
  readonly number: number;
  open: boolean;
  savepoints: string[];
}

/** Makes the schedule of a seed. */
export function scheduleOf(seed: number): Schedule {
  return new Planning(seed).plan();
}

class Planning {
  readonly #random: Random;
  readonly #locks = new TableLocks();
  readonly #steps: Step[] = [];
  readonly #sessions: readonly Session[];
  readonly #tables: readonly ScheduledTable[];
  readonly #given = { keys: 0 };
  #marks = 0;

  constructor(private readonly seed: number) {
    this.#random = new Random(seed);
    const count = 2 + this.#random.below(3);
    this.#sessions = Array.from({ length: count }, (_, number) => ({
      number,
      open: false,
      savepoints: [],
    }));
    this.#tables = Array.from({ length: 1 + count }, (_, number) => ({
      name: `public.s${seed}_${number}`,
      full: this.#random.below(4) === 0,
    }));
  }

  plan(): Schedule {
    const random = this.#random;
    const rounds = 15 + random.below(40);
    const crashes = random.below(2) === 0 ? 0 : 1 + random.below(2);
    for (let round = 0; round < rounds; round++) {
      this.#act(this.#session(random.below(this.#sessions.length)));
      if (random.next() < crashes / rounds) this.#crash();
      else if (random.below(rounds) === 0)
        this.#steps.push({ kind: 'arrival' });
    }
    for (const session of random.shuffled(this.#sessions))
      if (session.open) this.#end(session, 'commit');
    return { seed: this.seed, tables: this.#tables, steps: this.#steps };
  }

  #act(session: Session): void {
    const { number, savepoints } = session;
    if (!session.open) {
      session.open = true;
      this.#steps.push({ kind: 'begin', session: number });
    }
    const next = this.#random.of(MOVES);
    switch (next) {
      case 'statement':
        return this.#state(session);
      case 'savepoint':
        if (savepoints.length < MOST_SAVEPOINTS) this.#savepoint(session);
        return;
      case 'release':
      case 'rollback to':
        if (savepoints.length > 0) this.#leave(session, next);
        return;
      case 'commit':
      case 'rollback':
        return this.#end(session, next);
    }
  }

  #state({ number }: Session): void {
    const statement = this.#random.of(STATEMENTS)(this.#place(number));
    if (statement === null) return;
    this.#steps.push({ kind: 'statement', session: number, ...statement });
  }

  /** Of its own, or shared by all. */
  #place(session: number): Place {
    const table = this.#tables[this.#random.below(2) * (1 + session)];
    if (table === undefined) throw new Error('The session has no table.');
    this.#marks += 1;
    return new Place(
      this.#random,
      session,
      table,
      this.#marks,
      this.#tables,
      this.#locks,
      this.#given,
    );
  }

  #savepoint({ number, savepoints }: Session): void {
    const name = `s${savepoints.length}`;
    savepoints.push(name);
    this.#steps.push({ kind: 'savepoint', session: number, name });
  }

  /** Any that is open: those inside it go with it. One that is rolled back stays open. */
  #leave(session: Session, kind: 'release' | 'rollback to'): void {
    const { number, savepoints } = session;
    const place = this.#random.below(savepoints.length);
    const name = savepoints[place];
    if (name === undefined) throw new Error('No savepoint is open.');
    session.savepoints = savepoints.slice(
      0,
      kind === 'release' ? place : place + 1,
    );
    this.#steps.push({ kind, session: number, name });
  }

  #end(session: Session, kind: 'commit' | 'rollback'): void {
    session.open = false;
    session.savepoints = [];
    this.#locks.release(session.number);
    this.#steps.push({ kind, session: session.number });
  }

  /** Often when the pipeline has a part of what runs. */
  #crash(): void {
    if (this.#random.below(3) > 0) this.#steps.push({ kind: 'arrival' });
    this.#steps.push({ kind: 'crash', crash: crash(this.#random) });
  }

  #session(number: number): Session {
    const session = this.#sessions[number];
    if (session === undefined) throw new Error('There is no such session.');
    return session;
  }
}

function crash(random: Random): Crash {
  const how = random.of(['terminated', 'reset', 'restarted', 'refused']);
  return how === 'refused'
    ? { how, refusal: random.of([0, random.below(200), Infinity, 'applied']) }
    : { how };
}

function weighted<T>(
  items: readonly (readonly [T, number])[],
): readonly [T, ...T[]] {
  const [first, ...rest] = items.flatMap(([item, weight]) =>
    Array.from({ length: 2 * weight }, () => item),
  );
  if (first === undefined) throw new Error('There is nothing to choose.');
  return [first, ...rest];
}
