import type { Relation } from '../model/relation.js';

/** The last shape of tables, by OID and by name. Of more than the limit, the one that was noted longest ago goes. */
export class KnownRelations {
  /** In the order in which they were noted. */
  readonly #byOid: Map<number, Relation>;
  /** Who has a name now. A table that lost its name to another is still known by its OID. */
  readonly #byName: Map<string, number>;

  constructor(
    private readonly limit: number,
    from?: KnownRelations,
  ) {
    this.#byOid = new Map(from === undefined ? [] : from.#byOid);
    this.#byName = new Map(from === undefined ? [] : from.#byName);
  }

  get size(): number {
    return this.#byOid.size;
  }

  withOid(oid: number): Relation | undefined {
    return this.#byOid.get(oid);
  }

  named(name: string): Relation | undefined {
    const oid = this.#byName.get(name);
    return oid === undefined ? undefined : this.#byOid.get(oid);
  }

  /** Takes the place of an equal shape. */
  replace(relation: Relation): void {
    if (this.#byOid.has(relation.oid)) this.#byOid.set(relation.oid, relation);
  }

  /** Whether a table has the name of this shape. */
  owns({ oid, name }: Relation): boolean {
    return this.#byName.get(name) === oid;
  }

  /**
   * Notes a shape.
   *
   * @param named - whether the table has its name, and not another one since
   * @returns the OID of the table that went for it
   */
  note(relation: Relation, named = true): number | null {
    this.forget(relation.oid);
    this.#byOid.set(relation.oid, relation);
    if (named) this.#byName.set(relation.name, relation.oid);
    if (this.#byOid.size <= this.limit) return null;
    const [oldest = relation.oid] = this.#byOid.keys();
    this.forget(oldest);
    return oldest;
  }

  /** Its table was announced as it is known. */
  touch(oid: number): void {
    const relation = this.#byOid.get(oid);
    if (relation === undefined) return;
    this.#byOid.delete(oid);
    this.#byOid.set(oid, relation);
  }

  /** Its shape is not known any more. */
  forget(oid: number): void {
    const relation = this.#byOid.get(oid);
    if (relation === undefined) return;
    this.#byOid.delete(oid);
    if (this.#byName.get(relation.name) === oid)
      this.#byName.delete(relation.name);
  }
}
