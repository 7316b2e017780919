/** The tables of the model: several versions of each, which differ in the order of the columns alone, so that none of them is destructive. */
export const TABLES = [0, 1, 2] as const;

/** What is written of one table with one statement. */
export interface Written {
  readonly kind: 'row';
  readonly op: 'insert' | 'update' | 'delete';
  readonly table: number;
  /** As the transaction sees it. */
  readonly version: number;
  /** Makes the values of the row. */
  readonly number: number;
}

export type Content =
  | Written
  | {
      readonly kind: 'truncate';
      readonly tables: readonly {
        readonly table: number;
        readonly version: number;
      }[];
    }
  | {
      readonly kind: 'message';
      readonly lsn: bigint;
      readonly number: number;
    }
  /** Changes what is not published: the server sends nothing of it. */
  | { readonly kind: 'elsewhere' };

export type Item = Content & { readonly subxid: number };

interface Savepoint {
  /** `null` until something is written in it. */
  xid: number | null;
  /** Versions that were made in it. */
  readonly versions: Map<number, number>;
  /** Those released into it. */
  readonly released: number[];
}

/** A transaction that runs. */
export class ModelTransaction {
  /** What was not rolled back, in order. */
  items: Item[] = [];
  readonly #stack: Savepoint[];
  /** Tables whose definition was changed by it, also when that was rolled back. */
  readonly changed = new Set<number>();

  constructor(
    readonly xid: number,
    private readonly nextXid: () => number,
  ) {
    this.#stack = [{ xid, versions: new Map(), released: [] }];
  }

  get depth(): number {
    return this.#stack.length;
  }

  /** The version that it has made of a table; `undefined` when it sees that of everybody. */
  versionOf(table: number): number | undefined {
    return this.#stack
      .findLast(({ versions }) => versions.has(table))
      ?.versions.get(table);
  }

  /** Those that everybody sees when it has committed. */
  get versions(): ReadonlyMap<number, number> {
    return this.#top(0).versions;
  }

  write(content: Content): Item {
    const item = { ...content, subxid: this.#writer() };
    this.items.push(item);
    return item;
  }

  define(table: number, version: number): void {
    this.#writer();
    this.changed.add(table);
    this.#top(this.depth - 1).versions.set(table, version);
  }

  savepoint(): void {
    this.#stack.push({ xid: null, versions: new Map(), released: [] });
  }

  release(): void {
    if (this.depth === 1) return;
    const inner = this.#stack.pop();
    const outer = this.#top(this.depth - 1);
    for (const [table, version] of inner?.versions ?? [])
      outer.versions.set(table, version);
    outer.released.push(...(inner?.released ?? []));
    if (inner && inner.xid !== null) outer.released.push(inner.xid);
  }

  /**
   * Rolls back to a savepoint, at least the outermost.
   *
   * @returns the subtransactions that end, in the order in which the server takes note of it: the one itself behind those within
   */
  rollBack(depth: number): number[] {
    const ended = this.#stack
      .splice(Math.max(1, depth))
      // One above the other is rolled back by itself, the innermost first.
      .toReversed()
      .flatMap(({ xid, released }) => [
        ...released.toSorted((a, b) => this.#age(b) - this.#age(a)),
        ...(xid === null ? [] : [xid]),
      ]);
    const gone = new Set(ended);
    this.items = this.items.filter(({ subxid }) => !gone.has(subxid));
    return ended;
  }

  /** All of its subtransactions that have not been rolled back, for when it is itself. */
  rollBackAll(): number[] {
    const base = this.#top(0);
    const ended = [...this.rollBack(1), ...base.released];
    this.items = [];
    return ended;
  }

  /** Gives the current savepoint an id, and those around it before: as the server does. */
  #writer(): number {
    for (const savepoint of this.#stack) savepoint.xid ??= this.nextXid();
    return this.#top(this.depth - 1).xid ?? this.xid;
  }

  #age(xid: number): number {
    return (this.xid - xid) | 0;
  }

  #top(at: number): Savepoint {
    const savepoint = this.#stack[at];
    if (savepoint === undefined) throw new Error('There is no such savepoint.');
    return savepoint;
  }
}
