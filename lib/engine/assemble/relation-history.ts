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
    { relations, broken, nextNumber }: StoredRelations,
    commitLsn: Lsn | null,
  ): void {
    // Another process has gone on since.
    if (commitLsn !== null && commitLsn > (this.#durable ?? 0n))
      this.#unstored.clear();
    this.#nextNumber = nextNumber;
    this.#known = new KnownRelations(this.#limit);
    for (const oid of broken) this.#unstored.set(oid, null);
    for (const relation of relations) this.#note(relation);
    for (const relation of this.#unstored.values()) {
      if (relation !== null) this.#note(relation);
    }
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

  /** Whether this change of this transaction was told, or accepted. */
  hasPassed(change: SchemaChange, commitLsn: Lsn): boolean {
    return this.#passed.has(identityOf(change, commitLsn));
  }

  pass(change: SchemaChange, commitLsn: Lsn): void {
    this.#passed.set(identityOf(change, commitLsn), commitLsn);
  }

  #note(relation: Relation): void {
    const gone = this.#known.note(relation);
    if (gone === null) return;
    this.#unstored.set(gone, null);
    this.#broughtAt.delete(gone);
  }
}

/** The same change of another transaction is another one: what was undone may be done again. */
function identityOf(
  { change, before, after }: SchemaChange,
  commitLsn: Lsn,
): string {
  return JSON.stringify([String(commitLsn), change, before, after]);
}
