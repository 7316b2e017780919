import type { Random } from '../random.js';
import type { TableLocks } from './locks.js';
import type { ScheduledTable, Trace } from './steps.js';

export interface Statement {
  readonly sql: string;
  readonly traces: readonly Trace[];
}

/** Keys of rows in a table that a session writes: none writes the rows of another one. */
export const KEYS = 1_000_000;

/** Where a statement works, and what it may choose by. */
export class Place {
  constructor(
    readonly random: Random,
    readonly session: number,
    readonly table: ScheduledTable,
    /** In every row that the statement writes, and in those of no other statement. */
    readonly mark: number,
    private readonly all: readonly ScheduledTable[],
    private readonly locks: TableLocks,
    /** How many keys were given out. */
    private readonly given: { keys: number },
  ) {}

  get name(): string {
    return this.table.name;
  }

  /** That of every row that the statement writes. */
  get written(): Trace[] {
    return [{ of: `${this.name} written by ${this.mark}`, rows: null }];
  }

  /** Keys that no row has. */
  keys(count: number): { readonly first: number; readonly last: number } {
    const first = this.session * KEYS + this.given.keys;
    this.given.keys += count;
    return { first, last: first + count - 1 };
  }

  /** A condition for some rows of the session. */
  some(by: number): string {
    const { session, random } = this;
    return `id >= ${session * KEYS} and id < ${(session + 1) * KEYS} and id % ${by} = ${random.below(by)}`;
  }

  /** Whether rows may be changed at once. */
  share(): boolean {
    return this.locks.share(this.session, this.name);
  }

  /** Whether the table may be changed at once. */
  own(): boolean {
    return this.locks.own(this.session, this.name);
  }

  /** Now and then, others that may be changed at once. */
  ownMore(): ScheduledTable[] {
    return this.all.filter(
      (other) =>
        other !== this.table &&
        this.random.below(4) === 0 &&
        this.locks.own(this.session, other.name),
    );
  }
}
