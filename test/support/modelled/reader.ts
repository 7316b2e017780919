import type { Chunk } from '../../../lib/engine/snapshot/incremental/chunk.js';
import type { RawRow } from '../../../lib/engine/snapshot/raw-row.js';
import type { ModelTable } from './messages.js';
import type { ModelRow, ModelSource } from './source.js';

const ROW_BYTES = 40;

/** Reads chunks of the modelled table, each with a snapshot of its own. */
export class ModelReader {
  readonly #rows = new WeakMap<Chunk, ReadonlyMap<RawRow, ModelRow>>();

  constructor(
    private readonly source: ModelSource,
    private readonly table: ModelTable,
    readonly chunkRows: number,
  ) {}

  /** Rows behind a key; `null` for the first. */
  behind(bound: number | null): Chunk {
    const rows = this.#all.filter(({ id }) => id > (bound ?? -1));
    return this.#chunk(this.#snapshot, rows.slice(0, this.chunkRows));
  }

  withKeys(keys: readonly RawRow[]): Chunk {
    const ids = new Set(keys.map(([id]) => Number(id)));
    return this.#chunk(
      { ...this.#snapshot, keys },
      this.#all.filter(({ id }) => ids.has(id)),
    );
  }

  /** The whole table by one snapshot, in at least one chunk. */
  pages(): Chunk[] {
    const [all, snapshot] = [this.#all, this.#snapshot];
    const pages: Chunk[] = [];
    for (let at = 0; at === 0 || at < all.length; at += this.chunkRows)
      pages.push(this.#chunk(snapshot, all.slice(at, at + this.chunkRows)));
    return pages;
  }

  /** The row that a chunk has as text. */
  rowOf(chunk: Chunk, raw: RawRow): ModelRow {
    const row = this.#rows.get(chunk)?.get(raw);
    if (row === undefined) throw new Error('A row was not in its chunk.');
    return row;
  }

  lastId(chunk: Chunk): number | null {
    const last = chunk.rows.at(-1);
    return last === undefined ? null : this.rowOf(chunk, last).id;
  }

  get #all(): ModelRow[] {
    return [...this.source.rows.values()].toSorted((a, b) => a.id - b.id);
  }

  get #snapshot(): Omit<Chunk, 'rows' | 'bytes'> {
    return {
      table: this.table.published,
      visible: this.source.snapshot(),
      readAt: this.source.inserted,
      flushed: this.source.flushed,
    };
  }

  #chunk(
    snapshot: Omit<Chunk, 'rows' | 'bytes'>,
    rows: readonly ModelRow[],
  ): Chunk {
    const of = new Map(rows.map((row) => [this.table.raw(row), row]));
    const bytes = ROW_BYTES * rows.length;
    const chunk = { ...snapshot, rows: [...of.keys()], bytes };
    this.#rows.set(chunk, of);
    return chunk;
  }
}
