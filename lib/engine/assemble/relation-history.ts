import type { Lsn } from '../model/lsn.js';
import type { Relation } from '../model/relation.js';
import type { SchemaChange } from '../model/schema-change.js';
import { KnownRelations } from './known-relations.js';
import type { StoredRelations, UnstoredRelations } from './stored-relations.js';

/** Tables whose shape is kept. */
const MAX_RELATIONS = 1_000;

/**
 * The shape of each table as of the last transaction that is durable. It outlives connections: what was read ahead on a
 * lost one comes again, from its first shape on. So does what may pass: changes that were told or accepted.
 */
export class RelationHistory {
  readonly #limit: number;
  #known: KnownRelations;
  /** Commit position of the last transaction that is durable. */
  #durable: Lsn | null = null;
  readonly #unstored = new Map<number, Relation | null>();
  /** Commit positions of the transactions that brought shapes. */
  readonly #broughtAt = new Map<number, Lsn>();
  /** Number of the next shape that is stored: of two tables that had a name, the later one has it. */
  #nextNumber = 0;
  /** Changes of transactions that are not durable yet, and the commit positions of these. */
  readonly #passed = new Map<string, Lsn>();

  constructor(limit = MAX_RELATIONS) {
    this.#limit = limit;
    this.#known = new KnownRelations(limit);
  }

  get known(): KnownRelations {
    return this.#known;
  }

  /** What a connection begins with; it goes its own way from there. */
  copy(): KnownRelations {
    return new KnownRelations(this.#limit, this.#known);
  }

  /** What is durable and not stored with the checkpoint. */
  get unstored(): UnstoredRelations {
    return this.#unstored;
  }

  /** Number of the first of them when they are stored. */
  get nextNumber(): number {
    return this.#nextNumber;
  }

  /** Begins anew: nothing was applied to the sink yet. */
  clear(): void {
    this.#known = new KnownRelations(this.#limit);
    this.#durable = null;
    this.#unstored.clear();
    this.#broughtAt.clear();
  }

  /**
   * Transactions that commit above this position come again although they were durable, with the shapes that they had: what
   * they brought is not known any more.
   */
  comeAgain(watermark: Lsn): void {
    for (const [oid, commitLsn] of this.#broughtAt) {
      if (commitLsn <= watermark) continue;
      this.#broughtAt.delete(oid);
      this.#unstored.delete(oid);
      this.#known.forget(oid);
    }
  }

  /**
   * Takes in what was read with the checkpoint: the truth, but for what this process applied and did not store.
   *
   * @param commitLsn - commit position that was read
   */
  resume(
    { relations, nameless, broken, nextNumber }: StoredRelations,
    commitLsn: Lsn | null,
  ): void {
    // Another process has gone on since.
    if (commitLsn !== null && commitLsn > (this.#durable ?? 0n))
      this.#unstored.clear();
    this.#nextNumber = nextNumber;
    const unstored = [...this.#unstored.values()].flatMap((relation) =>
      relation === null
        ? []
        : [{ relation, named: this.#known.owns(relation) }],
    );
    this.#known = new KnownRelations(this.#limit);
    for (const oid of broken) this.#unstored.set(oid, null);
    for (const relation of nameless) this.#note(relation, false);
    for (const relation of relations) this.#note(relation);
    for (const { relation, named } of unstored) this.#note(relation, named);
  }

  /** A transaction is durable that gave these tables another shape. */
  durable(shapes: readonly Relation[], commitLsn: Lsn): void {
    this.#durable = commitLsn;
    for (const relation of shapes) {
      // Deleted first: what is set again goes to the end.
      this.#unstored.delete(relation.oid);
      this.#unstored.set(relation.oid, relation);
      this.#broughtAt.set(relation.oid, commitLsn);
      this.#note(relation);
    }
    if (this.#passed.size === 0) return;
    for (const [change, lsn] of this.#passed) {
      if (lsn <= commitLsn) this.#passed.delete(change);
    }
  }

  /** These are stored with the checkpoint. */
  stored(relations: UnstoredRelations): void {
    this.#nextNumber += relations.size;
    for (const [oid, relation] of relations) {
      if (this.#unstored.get(oid) === relation) this.#unstored.delete(oid);
    }
  }

  /** A table was announced with the shape that is known. */
  touch(oid: number): void {
    this.#known.touch(oid);
  }

  /** The shape that is durable. */
  shapeOf(oid: number): Relation | null {
    return this.#known.withOid(oid) ?? null;
  }

  /** What has to be stored with a transaction that brings these shapes, and what is known then. */
  with(shapes: readonly Relation[]): {
    readonly unstored: UnstoredRelations;
    readonly known: KnownRelations;
  } {
    const known = this.copy();
    const unstored = new Map(this.#unstored);
    for (const relation of shapes) {
      unstored.delete(relation.oid);
      unstored.set(relation.oid, relation);
      note(relation, true, known, unstored);
    }
    return { unstored, known };
  }

  /** Whether this change of this transaction was told, or accepted. */
  hasPassed(change: SchemaChange, commitLsn: Lsn): boolean {
    return this.#passed.has(identityOf(change, commitLsn));
  }

  pass(change: SchemaChange, commitLsn: Lsn): void {
    this.#passed.set(identityOf(change, commitLsn), commitLsn);
  }

  #note(relation: Relation, named = true): void {
    const { gone, loser } = note(relation, named, this.#known, this.#unstored);
    if (loser !== null && this.#durable !== null)
      this.#broughtAt.set(loser, this.#durable);
    if (gone !== null) this.#broughtAt.delete(gone);
  }
}

/**
 * Notes a shape, and what has to be stored of others because of it.
 *
 * @returns OIDs: of the table that went for it, and of the one that lost its name to it
 */
function note(
  relation: Relation,
  named: boolean,
  known: KnownRelations,
  unstored: Map<number, Relation | null>,
): { readonly gone: number | null; readonly loser: number | null } {
  const namesake = named ? known.named(relation.name) : undefined;
  const gone = known.note(relation, named);
  if (gone !== null) unstored.set(gone, null);
  if (namesake === undefined || namesake.oid === relation.oid)
    return { gone, loser: null };
  // Otherwise it would have the name again after a restart, once this one is called otherwise. What is stored of it is another.
  const loser = { ...namesake };
  known.replace(loser);
  if (gone !== loser.oid) unstored.set(loser.oid, loser);
  return { gone, loser: loser.oid };
}

/** The same change of another transaction is another one: what was undone may be done again. */
function identityOf(
  { change, before, after }: SchemaChange,
  commitLsn: Lsn,
): string {
  return JSON.stringify([String(commitLsn), change, before, after]);
}
