import { parseSnapshot } from '../../../lib/engine/snapshot/incremental/snapshot-text.js';
import type { VisibleTransactions } from '../../../lib/engine/snapshot/incremental/visibility.js';
import type { Lsn } from '../../../lib/engine/model/lsn.js';

/** A row of the modelled table: a key, a small value, and a large one that an update need not carry. */
export interface ModelRow {
  readonly id: number;
  /** Grows with every change of whatever row, so that older is less. */
  readonly version: number;
  /** The version at which the large value was written. */
  readonly large: number;
}

/** What a transaction has done, as the stream brings it. */
export type ModelChange =
  | { readonly op: 'insert'; readonly row: ModelRow }
  | {
      readonly op: 'update';
      readonly before: ModelRow;
      readonly row: ModelRow;
      /** The large value is not carried. */
      readonly unchanged: boolean;
    }
  | {
      readonly op: 'delete';
      readonly before: ModelRow;
      readonly version: number;
    }
  | { readonly op: 'truncate'; readonly version: number };

/** A commit in the log. */
export interface LoggedCommit {
  readonly xid: bigint;
  readonly commitLsn: Lsn;
  readonly endLsn: Lsn;
  readonly changes: readonly ModelChange[];
}

/** A transaction that has not ended, or that has ended and is not visible yet. */
export class ModelTransaction {
  readonly changes: ModelChange[] = [];
  /** Rows as it sees them; `null` for those it has removed. */
  readonly own = new Map<number, ModelRow | null>();
  readonly locked = new Set<number>();
  truncated = false;
  /** Highest id of it and its savepoints. */
  last: bigint;
  committed = false;

  constructor(readonly xid: bigint) {
    this.last = xid;
  }
}

/** A server with one table, as far as transactions, their log and their visibility go. */
export class ModelSource {
  /** What a new snapshot sees. */
  readonly rows = new Map<number, ModelRow>();
  readonly log: LoggedCommit[] = [];
  readonly running: ModelTransaction[] = [];
  /** End of the log. */
  inserted: Lsn = 1_000n;
  /** Of it, what the stream may bring. */
  flushed: Lsn = 1_000n;
  nextXid: bigint;
  #lastCompleted: bigint;
  #version = 0;

  constructor(
    firstXid: bigint,
    /** Commits are visible when they are in the log, and snapshots do not tell what is in progress. */
    readonly inRecovery: boolean,
    /** The old row of an update holds what the new one does not carry. */
    readonly identityIsFull: boolean,
  ) {
    this.nextXid = firstXid;
    this.#lastCompleted = firstXid - 1n;
  }

  begin(): ModelTransaction {
    const transaction = new ModelTransaction(this.nextXid++);
    this.running.push(transaction);
    return transaction;
  }

  /** A savepoint that writes takes an id that neither stream nor snapshot has. */
  savepoint(transaction: ModelTransaction): void {
    transaction.last = this.nextXid++;
  }

  /** Whether another transaction holds a row of these, or the table. */
  #isLocked(transaction: ModelTransaction, ids: readonly number[]): boolean {
    return this.running.some(
      (other) =>
        other !== transaction &&
        (other.truncated || ids.some((id) => other.locked.has(id))),
    );
  }

  row(transaction: ModelTransaction, id: number): ModelRow | null {
    const own = transaction.own.get(id);
    if (own !== undefined) return own;
    return transaction.truncated ? null : (this.rows.get(id) ?? null);
  }

  /** Inserts or updates a row. */
  write(transaction: ModelTransaction, id: number, withLarge: boolean): void {
    if (this.#isLocked(transaction, [id])) return;
    const before = this.row(transaction, id);
    const version = ++this.#version;
    const row = {
      id,
      version,
      large: before === null || withLarge ? version : before.large,
    };
    transaction.changes.push(
      before === null
        ? { op: 'insert', row }
        : { op: 'update', before, row, unchanged: this.#leavesOut(withLarge) },
    );
    this.#keep(transaction, id, row);
  }

  move(
    transaction: ModelTransaction,
    from: number,
    to: number,
    withLarge: boolean,
  ): void {
    if (from === to || this.#isLocked(transaction, [from, to])) return;
    const before = this.row(transaction, from);
    if (before === null || this.row(transaction, to) !== null) return;
    const version = ++this.#version;
    const large = withLarge ? version : before.large;
    const row = { id: to, version, large };
    transaction.changes.push({
      op: 'update',
      before,
      row,
      unchanged: this.#leavesOut(withLarge),
    });
    this.#keep(transaction, from, null);
    this.#keep(transaction, to, row);
  }

  remove(transaction: ModelTransaction, id: number): void {
    if (this.#isLocked(transaction, [id])) return;
    const before = this.row(transaction, id);
    if (before === null) return;
    const version = ++this.#version;
    transaction.changes.push({ op: 'delete', before, version });
    this.#keep(transaction, id, null);
  }

  truncate(transaction: ModelTransaction): void {
    const isFree = this.running.every(
      (other) =>
        other === transaction || (!other.truncated && other.locked.size === 0),
    );
    if (!isFree) return;
    transaction.truncated = true;
    transaction.own.clear();
    transaction.changes.push({ op: 'truncate', version: ++this.#version });
  }

  /** Writes the commit. */
  commit(transaction: ModelTransaction): void {
    this.#log(transaction);
    this.flush();
  }

  /** Writes the commit, and lets it be seen before it is flushed, as with `synchronous_commit = off`. */
  commitAsynchronously(transaction: ModelTransaction): void {
    this.#log(transaction);
    if (this.inRecovery) this.flush();
    else this.show(transaction);
  }

  get isFlushed(): boolean {
    return this.flushed === this.inserted;
  }

  flush(): void {
    this.flushed = this.inserted;
  }

  #log(transaction: ModelTransaction): void {
    transaction.committed = true;
    const commitLsn = this.inserted;
    this.inserted += 60n;
    const { xid, changes } = transaction;
    this.log.push({ xid, commitLsn, endLsn: this.inserted, changes });
    if (this.inRecovery) this.show(transaction);
  }

  /** What was committed becomes visible. */
  show(transaction: ModelTransaction): void {
    if (transaction.truncated) this.rows.clear();
    for (const [id, row] of transaction.own)
      if (row === null) this.rows.delete(id);
      else this.rows.set(id, row);
    this.#end(transaction);
  }

  rollBack(transaction: ModelTransaction): void {
    this.#end(transaction);
  }

  /** Something else is written, and not at once made durable. */
  writeElse(): void {
    this.inserted += 10n;
  }

  /** Whether a reader would wait for the table. */
  get isTableLocked(): boolean {
    return this.running.some(({ truncated }) => truncated);
  }

  snapshot(): VisibleTransactions {
    const xmax = this.#lastCompleted + 1n;
    const inProgress = this.running
      .map(({ xid }) => xid)
      .filter((xid) => xid < xmax)
      .toSorted((a, b) => (a < b ? -1 : 1));
    const list = this.inRecovery ? '' : inProgress.join(',');
    const text = `${inProgress[0] ?? xmax}:${xmax}:${list}`;
    const visible = parseSnapshot(text, this.inRecovery);
    if (visible === null) throw new Error('The model prints no snapshot.');
    return visible;
  }

  #leavesOut(withLarge: boolean): boolean {
    return !withLarge && !this.identityIsFull;
  }

  #keep(transaction: ModelTransaction, id: number, row: ModelRow | null): void {
    transaction.own.set(id, row);
    transaction.locked.add(id);
  }

  #end(transaction: ModelTransaction): void {
    this.running.splice(this.running.indexOf(transaction), 1);
    const { last } = transaction;
    if (last > this.#lastCompleted) this.#lastCompleted = last;
  }
}
