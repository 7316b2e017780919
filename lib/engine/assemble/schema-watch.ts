import type { Lsn } from '../model/lsn.js';
import type { Relation } from '../model/relation.js';
import type { SchemaChange } from '../model/schema-change.js';
import type { KnownRelations } from './known-relations.js';
import { relationDifference } from './relation-diff.js';
import type { RelationHistory } from './relation-history.js';

const NONE: readonly Relation[] = [];

/**
 * Compares the tables that one connection announces with those that are known.
 *
 * A table counts when a row of it follows. Before a row of a partition that is published as part of its root, the server
 * announces both: what becomes of the partition concerns nobody then.
 */
export class SchemaWatch {
  readonly #history: RelationHistory;
  readonly #additive: (change: SchemaChange, commitLsn: Lsn) => void;
  /** As of what was read last, which may be far ahead of what is durable. */
  readonly #known: KnownRelations;
  /** Announced since the last row. */
  #announced: Relation[] = [];
  /** New shapes of the transaction that is read. */
  #shapes: Relation[] = [];
  /** Somebody holds them already. */
  #shared = false;
  /** Of transactions that were applied before: possibly older than what is known. */
  readonly #passedOver = new Map<number, Relation>();
  /** News that the server does not announce again: of a transaction that is left out though it was not applied, or beside an older one. */
  readonly #putOff = new Map<number, Relation>();

  /** @param additive - told of a change that passes, once */
  constructor(
    history: RelationHistory,
    additive: (change: SchemaChange, commitLsn: Lsn) => void,
  ) {
    this.#history = history;
    this.#known = history.copy();
    this.#additive = additive;
  }

  /** The next row tells which of the tables that were announced it concerns. */
  get waiting(): boolean {
    return this.#announced.length > 0 || this.#putOff.size > 0;
  }

  announce(relation: Relation): void {
    this.#putOff.delete(relation.oid);
    this.#announced.push(relation);
  }

  /** A row, or a truncation, of these tables in a transaction that was applied before. */
  passOver(relations: readonly Relation[]): void {
    for (const relation of this.#used(relations))
      this.#passedOver.set(relation.oid, relation);
  }

  /** A row, or a truncation, of these tables in a transaction that is left out and was not applied: the next row of each counts. */
  putOff(relations: readonly Relation[]): void {
    for (const relation of this.#used(relations)) {
      if (!this.#knows(relation)) this.#putOff.set(relation.oid, relation);
    }
  }

  /**
   * A transaction has ended that was sent while it ran, and had older shapes of these tables. The stream goes on with these, and does not
   * announce them again: the next row of each counts.
   */
  goOnWith(relations: readonly Relation[]): void {
    for (const relation of relations) {
      const known = this.#known.withOid(relation.oid);
      if (known !== undefined && !isSame(known, relation))
        this.#putOff.set(relation.oid, relation);
    }
  }

  /** A transaction begins that is new. Of what was passed over, only what nobody knew is news. */
  begin(): void {
    if (this.#passedOver.size === 0) return;
    for (const relation of this.#passedOver.values()) {
      const { oid, name } = relation;
      if (this.#known.withOid(oid) ?? this.#known.named(name)) continue;
      this.#note(relation);
    }
    this.#passedOver.clear();
  }

  /**
   * A row, or a truncation, of these tables.
   *
   * @returns the destructive changes that nobody has accepted; then nothing of it is durable, and nothing more must follow
   */
  meet(relations: readonly Relation[], commitLsn: Lsn): SchemaChange[] {
    const refused: SchemaChange[] = [];
    for (const relation of [
      ...this.#used(relations),
      ...this.#takeUp(relations),
    ]) {
      const changes = changesTo(relation, this.#known);
      const open = changes.filter(
        (change) => !this.#history.hasPassed(change, commitLsn),
      );
      const destructive = open.filter(({ effect }) => effect === 'destructive');
      if (destructive.length > 0) {
        refused.push(...destructive);
        // The next table of this truncation may have the name that this one had.
        this.#known.note(relation);
        continue;
      }
      for (const change of open) {
        this.#history.pass(change, commitLsn);
        this.#additive(change, commitLsn);
      }
      if (this.#knows(relation)) this.#touch(relation.oid);
      else this.#note(relation);
    }
    return refused;
  }

  /** New shapes of the transaction that is read; more follow until its end. */
  share(): readonly Relation[] {
    this.#shared = true;
    return this.#shapes;
  }

  /** The transaction ends: gives its new shapes, to which nothing is added any more. */
  end(): readonly Relation[] {
    const shapes = this.#shapes;
    if (shapes.length === 0 && !this.#shared) return NONE;
    this.#shapes = [];
    this.#shared = false;
    return shapes;
  }

  #used(relations: readonly Relation[]): Relation[] {
    const used = this.#announced.filter((relation) =>
      relations.includes(relation),
    );
    this.#announced = [];
    return used;
  }

  /** Those of them that were put off. */
  #takeUp(relations: readonly Relation[]): Relation[] {
    if (this.#putOff.size === 0) return [];
    const found = relations.filter(
      (relation) => this.#putOff.get(relation.oid) === relation,
    );
    for (const { oid } of found) this.#putOff.delete(oid);
    return found;
  }

  #knows(relation: Relation): boolean {
    return (
      this.#known.owns(relation) &&
      isSame(this.#known.withOid(relation.oid), relation)
    );
  }

  #note(relation: Relation): void {
    this.#known.note(relation);
    this.#shapes.push(relation);
  }

  #touch(oid: number): void {
    this.#known.touch(oid);
    this.#history.touch(oid);
  }
}

/** What an announcement changes: who has a name, what a table is called, and of what it is made. */
function changesTo(after: Relation, known: KnownRelations): SchemaChange[] {
  const changes: SchemaChange[] = [];
  const before = known.withOid(after.oid);
  const namesake = known.named(after.name);
  if (namesake !== undefined && namesake.oid !== after.oid) {
    changes.push({
      effect: 'destructive',
      change: 'table_replaced',
      relation: after.name,
      detail: `the table of this name had the OID ${namesake.oid} and has ${after.oid}`,
      before: namesake,
      after,
    });
  }
  if (before === undefined) return changes;
  if (before.name !== after.name) {
    changes.push({
      effect: 'destructive',
      change: 'table_renamed',
      relation: before.name,
      detail: `is called ${after.name} now`,
      before,
      after,
    });
  }
  const difference = relationDifference(before, after);
  if (difference !== null)
    changes.push({ ...difference, relation: before.name, before, after });
  return changes;
}

/** Equal in all that is known of it, the order of the columns included. */
function isSame(before: Relation | undefined, after: Relation): boolean {
  return (
    before !== undefined && JSON.stringify(before) === JSON.stringify(after)
  );
}
