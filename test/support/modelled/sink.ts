import type { ModelChange, ModelRow } from './source.js';

/** A row of the modelled sink; `null` for a large value that was never brought. */
export interface SinkRow {
  readonly version: number;
  readonly large: number | null;
}

/** A mirror that leaves alone what is not brought, and refuses what is older than what it had. */
export class ModelSink {
  readonly rows = new Map<number, SinkRow>();
  /** The newest version of each key, also of one that is gone. */
  readonly #newest = new Map<number, number>();
  #truncatedAt = 0;

  apply(change: ModelChange): void {
    switch (change.op) {
      case 'insert':
        this.#set(change.row.id, change.row);
        return;
      case 'update': {
        const { before, row, unchanged } = change;
        const had = this.rows.get(before.id);
        if (before.id !== row.id) {
          this.#see(before.id, row.version);
          this.rows.delete(before.id);
        }
        const large = unchanged ? (had?.large ?? null) : row.large;
        this.#set(row.id, { version: row.version, large });
        return;
      }
      case 'delete':
        this.#see(change.before.id, change.version);
        this.rows.delete(change.before.id);
        return;
      case 'truncate':
        this.rows.clear();
        this.#truncatedAt = change.version;
    }
  }

  /** A row of a chunk, all of it. */
  put(row: ModelRow): void {
    this.#set(row.id, row);
  }

  /** The large value of a row, and nothing else. */
  fill(id: number, large: number): void {
    const had = this.rows.get(id);
    if (had === undefined) throw new Error(`Row ${id} was filled and is none.`);
    if (had.large !== null && had.large > large)
      throw new Error(`The large value of row ${id} went back in time.`);
    this.rows.set(id, { ...had, large });
  }

  #set(id: number, row: SinkRow): void {
    this.#see(id, row.version);
    this.rows.set(id, { version: row.version, large: row.large });
  }

  #see(id: number, version: number): void {
    if (version < Math.max(this.#newest.get(id) ?? 0, this.#truncatedAt))
      throw new Error(`Row ${id} went back in time.`);
    this.#newest.set(id, version);
  }
}

/** A mirror of a table without a key: how often it holds each row. */
export class KeylessSink {
  readonly counts = new Map<number, number>();

  apply(change: ModelChange): void {
    if (change.op === 'truncate') {
      this.counts.clear();
      return;
    }
    if (change.op !== 'insert') this.#count(change.before.version, -1);
    if (change.op !== 'delete') this.put(change.row);
  }

  put(row: ModelRow): void {
    this.#count(row.version, 1);
  }

  clear(): void {
    this.counts.clear();
  }

  /** One that is not there is not removed. */
  #count(version: number, by: number): void {
    const count = (this.counts.get(version) ?? 0) + by;
    if (count > 0) this.counts.set(version, count);
    else this.counts.delete(version);
  }
}
