import type {
  DeleteMessage,
  InsertMessage,
  UpdateMessage,
} from '../../model/replication-message.js';
import type { Relation } from '../../model/relation.js';
import type { PublishedTable } from '../../server/published-table.js';
import type { RawRow } from '../raw-row.js';
import { ChangedRows } from './changed-rows.js';
import type { Chunk, Fill, ReadyChunk } from './chunk.js';
import type { Lack, LackingRows } from './lacking-rows.js';
import {
  identityOf,
  identityOfTable,
  keyOfRecord,
  keyOfRow,
  type RowIdentity,
  rowKey,
  type RowKey,
} from './row-identity.js';
import { PickedRows } from './picked-rows.js';
import { sees, type VisibleTransactions } from './visibility.js';

/** A table that is being copied, and what the stream has changed of it. */
export class TrackedTable {
  readonly changed = new ChangedRows();
  readonly #identity: RowIdentity;
  /** Of the columns that the stream announces as its replica identity. */
  readonly #announcedAs: string;
  readonly #places: ReadonlyMap<string, number>;
  readonly #identityPlaces: readonly number[];
  /** The shape that was announced last, and how it tells rows apart. */
  #announced: { relation: Relation; identity: RowIdentity } | null = null;

  /** @param notBefore - a chunk is used when it sees every transaction below this one; `null` when any is */
  constructor(
    readonly table: PublishedTable,
    readonly lacking: LackingRows,
    public notBefore: bigint | null,
  ) {
    this.#identity = identityOfTable(table);
    this.#announcedAs = identityOf(table.columns).text;
    this.#places = new Map(
      table.columns.map(({ name }, place) => [name, place]),
    );
    const { columns } = this.#identity;
    this.#identityPlaces = table.columns.flatMap(({ name }, place) =>
      columns.includes(name) ? [place] : [],
    );
  }

  /** Whether its rows can be told apart, and read in an order. */
  get keyed(): boolean {
    return this.table.orderKey !== null;
  }

  /** @param keep - whether a chunk may be used that does not see the transaction */
  change(
    message: InsertMessage | UpdateMessage | DeleteMessage,
    xid: number,
    keep: boolean,
  ): void {
    const identity = this.#identity;
    if (
      !this.keyed ||
      this.#identityIn(message.relation).text !== this.#announcedAs
    ) {
      if (keep) this.changed.unnamed(xid);
      // Rows that lack columns are not found again under another identity.
      if (
        this.keyed &&
        message.kind === 'update' &&
        message.unchanged.length > 0
      )
        this.lacking.giveUp(xid);
      return;
    }
    if (identity.columns.length === 0) {
      // Partitions may have an identity where their root has none.
      if (message.kind !== 'insert' && keep) this.changed.unnamed(xid);
      return;
    }
    switch (message.kind) {
      case 'insert':
        return this.#replaced(keyOfRecord(message.record, identity), xid, keep);
      case 'delete':
        return this.#replaced(
          keyOfRecord(message.old.record, identity),
          xid,
          keep,
        );
      case 'update':
        return this.#updated(message, identity, xid, keep);
    }
  }

  truncate(xid: number, keep: boolean): void {
    this.lacking.clear();
    if (!keep) return;
    if (this.keyed) this.changed.truncated(xid);
    else this.changed.unnamed(xid);
  }

  /** Whether it is known of every row of the chunk whether the stream has brought it. */
  tells({ table, visible }: Chunk): boolean {
    return (
      identityOf(table.columns).text === this.#announcedAs &&
      this.changed.tellsAll(visible)
    );
  }

  /** What the sink may be given of a chunk beside what the stream has brought until now. */
  left(chunk: Chunk): ReadyChunk {
    const { visible, rows, keys } = chunk;
    const isOrdered = keys === undefined;
    const whole: number[] = [];
    const fills: Fill[] = [];
    if (this.changed.isTruncated(visible)) return { chunk, rows: [], fills };
    // Mostly so; no row has to be looked at.
    if (isOrdered && !this.changed.any && !this.lacking.any)
      return { chunk, rows, fills };
    let place = 0;
    for (const row of rows) {
      const key = this.#keyOf(row);
      const columns = this.#missing(key, visible, isOrdered);
      if (columns === null) whole.push(place);
      else if (columns.length > 0) fills.push({ row, columns });
      place += 1;
    }
    // What is not there under its key is there no more, if the snapshot sees how it got there.
    for (const key of keys ?? []) this.#supplied(rowKey(key), visible);
    return { chunk, rows: new PickedRows(rows, whole), fills };
  }

  #identityIn(relation: Relation): RowIdentity {
    if (this.#announced?.relation !== relation)
      this.#announced = { relation, identity: identityOf(relation.columns) };
    return this.#announced.identity;
  }

  #replaced(key: RowKey | null, xid: number, keep: boolean): void {
    if (key !== null) this.lacking.gone(key);
    if (!keep) {
      if (key !== null) this.changed.settled(key);
    } else if (key === null) this.changed.unnamed(xid);
    else this.changed.replaced(key, xid);
  }

  #updated(
    { record, old, unchanged }: UpdateMessage,
    identity: RowIdentity,
    xid: number,
    keep: boolean,
  ): void {
    const key = keyOfRecord(record, identity);
    const before = old === null ? key : keyOfRecord(old.record, identity);
    if (key === null || before !== key) {
      this.#replaced(before, xid, keep);
      this.#replaced(key, xid, keep);
      if (key !== null) this.lacking.moved(key, xid, unchanged);
      return;
    }
    this.lacking.updated(key, unchanged);
    if (keep) this.changed.updated(key, xid, unchanged);
    else this.changed.settled(key);
  }

  #keyOf(row: RawRow): RowKey | null {
    return this.#identityPlaces.length === 0
      ? null
      : keyOfRow(row, this.#identityPlaces);
  }

  /**
   * Places of the columns of a row that the sink has to be given; `null` for all of them.
   *
   * @param isOrdered - whether the row was read for its own sake, and not because it lacks columns
   */
  #missing(
    key: RowKey | null,
    visible: VisibleTransactions,
    isOrdered: boolean,
  ): readonly number[] | null {
    if (key === null) return null;
    const change = this.changed.get(key);
    const brought =
      change === undefined || sees(visible, change.xid) ? null : change;
    const lack = this.#supplied(key, visible);
    if (brought === null && (isOrdered || lack?.columns === null)) return null;
    const names = new Set([
      ...(brought?.unchanged ?? []),
      ...(lack?.columns ?? []),
    ]);
    return [...names].flatMap((name) => this.#places.get(name) ?? []);
  }

  /** What the sink lacks of a row and this snapshot has; it lacks nothing then. */
  #supplied(key: RowKey, visible: VisibleTransactions): Lack | null {
    const lack = this.lacking.get(key);
    if (lack === undefined) return null;
    if (lack.xid !== null && !sees(visible, lack.xid)) return null;
    this.lacking.gone(key);
    return lack;
  }
}
