import type { Lsn } from '../../model/lsn.js';
import type { TableName } from '../../model/relation.js';
import type { PublishedTable } from '../../server/published-table.js';
import { orderOf, PlannedTable } from './planned-table.js';
import type { ProgressStep } from './sink-progress.js';
import { identityOfTable } from './row-identity.js';
import {
  completeProgress,
  type SnapshotProgress,
  tableKey,
  type ProgressTable,
  type TableProgress,
  type TableState,
} from '../../model/snapshot-progress.js';

/** What a backfill does next. */
export type Step =
  /** Read rows behind {@link PlannedTable.readBehind}. */
  | { readonly kind: 'rows'; readonly table: PlannedTable }
  /** Read rows that lack columns. */
  | { readonly kind: 'keys'; readonly table: PlannedTable }
  /** Read all of a table without an order key. */
  | { readonly kind: 'whole'; readonly table: PlannedTable }
  /** Too many rows lack columns: read the table from its beginning. */
  | { readonly kind: 'begin-again'; readonly table: PlannedTable }
  /** Tell the sink that everything is copied. */
  | { readonly kind: 'complete' }
  /** What was read has to be handed over first, or there is nothing to do. */
  | { readonly kind: 'wait' };

/** Rows of a table that lack columns, as they are known now. */
export type Lacking = (table: PublishedTable) => number | 'read-again';

/** So many rows that lack columns are read at once, before the end of their table. */
const MANY_LACKING = 1_000;

/** Where a backfill begins. */
export interface BackfillStart {
  /** Tables that are published now; not needed where all of them are copied. */
  readonly tables: readonly PublishedTable[];
  readonly floor: Lsn;
  /** `null` when nothing is stored. */
  readonly progress: SnapshotProgress | null;
  /** The last commit that the sink has applied; `null` for none. */
  readonly appliedThrough: Lsn | null;
  /** What commits from here on comes by the stream, also when it was applied. */
  readonly streamedFrom: Lsn;
  /** The stream has brought nothing yet. */
  readonly fresh: boolean;
}

/** Decides what is read next, and keeps what the sink has to store. */
export class BackfillPlan {
  readonly floor: Lsn;
  /** In the order in which they were asked for. */
  readonly tables: PlannedTable[];
  /** Tables that were copied before anything was read here. */
  #copied: readonly ProgressTable[];
  #complete: boolean;
  #uncertain: Lsn | null;
  /** Tables that were added since {@link BackfillPlan.takeStep} was called. */
  #added: PlannedTable[] = [];

  constructor(start: BackfillStart) {
    const { progress, tables, fresh } = start;
    this.floor = progress?.floor ?? start.floor;
    this.#complete = progress?.complete ?? false;
    this.#uncertain = comesAgain(start) ? (progress?.uncertain ?? null) : null;
    this.#copied = progress?.complete === true ? progress.tables : [];
    this.tables =
      progress === null
        ? tables.map(
            (table) => new PlannedTable(table, { state: 'uncleared' }, !fresh),
          )
        : goOn(start, progress);
  }

  /** What the sink stores when it has taken everything that was handed over. */
  get progress(): SnapshotProgress {
    return {
      floor: this.floor,
      complete: this.#complete,
      uncertain: this.#uncertain,
      tables: [
        ...completeProgress(this.floor, this.#copied).tables,
        ...this.tables.map(({ progress }) => progress),
      ],
    };
  }

  /** By what the {@link BackfillPlan.progress} is another since this was called last. */
  takeStep(): ProgressStep {
    const added = this.#added.map(({ progress }) => progress);
    this.#added = [];
    const changed: TableProgress[] = [];
    // Thousands of tables, for each chunk.
    for (const table of this.tables) {
      const change = table.takeChange();
      if (change !== null) changed.push(change);
    }
    return {
      complete: this.#complete,
      uncertain: this.#uncertain,
      added,
      changed,
    };
  }

  /** The sink was told that everything is copied. */
  get isComplete(): boolean {
    return this.#complete;
  }

  get uncleared(): readonly PlannedTable[] {
    return this.tables.filter(({ state }) => state.state === 'uncleared');
  }

  /** Names of the tables that are copied, and nothing more is known of, as changes have them. */
  get copied(): readonly string[] {
    return this.#copied.map(nameOf);
  }

  isCopied(table: PublishedTable): boolean {
    return (
      this.#copied.some((other) => tableKey(other) === tableKey(table)) ||
      this.find(table.oid)?.isDone === true
    );
  }

  find(oid: number): PlannedTable | null {
    return this.tables.find(({ table }) => table.oid === oid) ?? null;
  }

  /** Copies a table that is not in the list, or is copied already, once more; one that is being copied stays as it is. */
  add(table: PublishedTable): { table: PlannedTable; added: boolean } {
    const place = this.tables.findIndex(
      (other) => tableKey(other.table) === tableKey(table),
    );
    const known = this.tables[place];
    if (known !== undefined && !known.isDone)
      return { table: known, added: false };
    const planned = new PlannedTable(table, { state: 'waiting' }, false);
    planned.notBefore = 'unknown';
    if (known !== undefined) this.tables.splice(place, 1);
    this.#copied = this.#copied.filter(
      (other) => tableKey(other) !== tableKey(table),
    );
    this.tables.push(planned);
    this.#added.push(planned);
    this.#complete = false;
    return { table: planned, added: true };
  }

  /** Decides what is done next. Tables without an order key come last: the fewer keys are recorded beside them the better. */
  next(lacking: Lacking): Step {
    let waits = false;
    const open = this.tables.filter(({ isDone }) => !isDone);
    const keyed = open.filter(({ table }) => table.orderKey !== null);
    for (const table of keyed) {
      const step =
        table.notBefore === 'unknown'
          ? null
          : nextOfKeyed(table, lacking(table.table));
      if (step !== null) return step;
      waits = true;
    }
    for (const table of open) {
      if (table.table.orderKey !== null) continue;
      if (table.notBefore !== 'unknown' && !table.readToEnd)
        return { kind: 'whole', table };
      waits = true;
    }
    return { kind: waits || this.#complete ? 'wait' : 'complete' };
  }

  complete(): void {
    this.#complete = true;
  }

  /** Commit of a transaction of which it is not known which rows it leaves without columns; `null` for none. */
  get uncertain(): Lsn | null {
    return this.#uncertain;
  }

  /** A transaction is handed over of which it is not known which rows it leaves without columns; `null`: now it is. */
  uncertainSince(commitLsn: Lsn | null): void {
    this.#uncertain = commitLsn;
  }
}

function nextOfKeyed(
  table: PlannedTable,
  lacking: number | 'read-again',
): Step | null {
  if (lacking === 'read-again') return { kind: 'begin-again', table };
  const due = table.onlyLacks || (table.isReading && lacking >= MANY_LACKING);
  if (due && !table.readsKeys) return { kind: 'keys', table };
  return table.readToEnd ? null : { kind: 'rows', table };
}

/** Tables of a progress that are still published, each where it was. Those that were published since are left alone. */
function goOn(
  start: BackfillStart,
  progress: SnapshotProgress,
): PlannedTable[] {
  if (progress.complete) return [];
  const published = new Map(
    start.tables.map((table) => [tableKey(table), table]),
  );
  return progress.tables.flatMap((entry) => {
    const table = published.get(tableKey(entry));
    if (table === undefined) return [];
    const state = stateNow(entry, table, isUncertain(start));
    return [new PlannedTable(table, state, !start.fresh)];
  });
}

/** A transaction was applied of which it will never be known which rows it left without columns. */
function isUncertain(start: BackfillStart): boolean {
  const { appliedThrough, progress } = start;
  const uncertain = progress?.uncertain ?? null;
  return (
    uncertain !== null &&
    appliedThrough !== null &&
    appliedThrough >= uncertain &&
    !comesAgain(start)
  );
}

/** The stream brings that transaction once more, applied or not: then it is known. */
function comesAgain({ progress, streamedFrom }: BackfillStart): boolean {
  const uncertain = progress?.uncertain ?? null;
  return uncertain !== null && uncertain >= streamedFrom;
}

/** Where the copy of a table goes on: the progress says how far it was, the catalog what the table is now. */
function stateNow(
  entry: TableProgress,
  table: PublishedTable,
  uncertain: boolean,
): TableState {
  // Another table has its name now.
  if (entry.oid !== table.oid) return { state: 'uncleared' };
  if (entry.state === 'copying') return { state: 'uncleared' };
  if (entry.state !== 'reading') return { state: entry.state };
  if (table.orderKey === null) return { state: 'uncleared' };
  return uncertain || !fits(entry, table)
    ? { state: 'waiting' }
    : { state: 'reading', bound: entry.bound, lacking: entry.lacking };
}

function fits(
  { bound, lacking }: Extract<TableState, { state: 'reading' }>,
  table: PublishedTable,
): boolean {
  return (
    (bound === null || same(bound.order.flat(), orderOf(table).flat())) &&
    (lacking === null || same(lacking.columns, identityOfTable(table).columns))
  );
}

function same(some: readonly string[], others: readonly string[]): boolean {
  return (
    some.length === others.length &&
    some.every((text, place) => text === others[place])
  );
}

/** `schema.table`, as changes have it. */
export function nameOf({ schema, table }: TableName): string {
  return `${schema}.${table}`;
}
