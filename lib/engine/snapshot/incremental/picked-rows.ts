import type { RawRow, RawRows } from '../raw-row.js';

/** Some of several rows. */
export class PickedRows implements RawRows {
  readonly #rows: RawRows;
  readonly #places: readonly number[];

  /** @param places - of these rows, in their order */
  constructor(rows: RawRows, places: readonly number[]) {
    this.#rows = rows;
    this.#places = places;
  }

  get length(): number {
    return this.#places.length;
  }

  at(place: number): RawRow | undefined {
    const of = this.#places.at(place);
    return of === undefined ? undefined : this.#rows.at(of);
  }

  *[Symbol.iterator](): Iterator<RawRow, void> {
    for (const place of this.#places) {
      const row = this.#rows.at(place);
      if (row !== undefined) yield row;
    }
  }
}
