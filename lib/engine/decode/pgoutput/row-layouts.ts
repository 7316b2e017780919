import type { Relation } from '../../model/relation.js';
import type { RowLayout } from '../row-layout.js';

/** The tables that a connection has announced, by OID. */
export class RowLayouts {
  readonly #layouts = new Map<number, RowLayout>();
  /** Those of the transaction that is read now, when it has a scope of its own. */
  #scope: Map<number, RowLayout> | null = null;

  get size(): number {
    return this.#layouts.size;
  }

  get(oid: number): RowLayout | undefined {
    return this.#scope?.get(oid) ?? this.#layouts.get(oid);
  }

  set(layout: RowLayout): void {
    (this.#scope ?? this.#layouts).set(layout.relation.oid, layout);
  }

  /** What is announced from here on counts until the scope ends. */
  beginScope(): void {
    this.#scope = new Map();
  }

  /**
   * @param kept - OIDs of tables whose announcement in the scope counts from here on as well
   * @returns the other tables that were announced in it, as they are from here on
   */
  endScope(kept: ReadonlySet<number>): readonly Relation[] {
    const others: Relation[] = [];
    for (const [oid, layout] of this.#scope ?? []) {
      const own = this.#layouts.get(oid);
      if (kept.has(oid)) this.#layouts.set(oid, layout);
      else if (own !== undefined) others.push(own.relation);
    }
    this.#scope = null;
    return others;
  }
}
