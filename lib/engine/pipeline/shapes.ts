import type { RelationHistory } from '../assemble/relation-history.js';
import {
  writeRelations,
  type UnstoredRelations,
} from '../assemble/stored-relations.js';
import type { CheckpointKeeper, SinkCheckpoint } from '../model/checkpoint.js';
import type { Lsn } from '../model/lsn.js';
import type { Relation } from '../model/relation.js';

const NOTHING: UnstoredRelations = new Map();

/**
 * Hands the shapes of tables to the checkpoint, to be stored by its next write: those that are durable, and those of the
 * transaction that the sink works on. Most transactions bring none, and cost nothing here.
 */
export class ShapeStorage {
  readonly #history: RelationHistory;
  /** `null` for a checkpoint without a place for shapes. */
  readonly #keeper: Pick<CheckpointKeeper, 'keepRelations'> | null;
  /** What the checkpoint was handed. */
  #offered: UnstoredRelations = NOTHING;

  constructor(history: RelationHistory, checkpoint: SinkCheckpoint) {
    this.#history = history;
    this.#keeper =
      checkpoint.kind !== 'reader' &&
      checkpoint.keeper.keepRelations !== undefined
        ? checkpoint.keeper
        : null;
  }

  /** What the checkpoint holds was read. */
  resume(): void {
    this.#hand(new Map(this.#history.unstored));
  }

  /** A handler begins with a transaction that has these new shapes so far. */
  begin(shapes: readonly Relation[]): void {
    if (shapes.length > 0) this.#offer(shapes);
  }

  /**
   * It is durable.
   *
   * @param stored - the checkpoint was advanced to it, with what it was handed
   */
  durable(shapes: readonly Relation[], commitLsn: Lsn, stored: boolean): void {
    this.#history.durable(shapes, commitLsn);
    if (this.#keeper === null) this.#history.stored(this.#history.unstored);
    else if (stored) this.stored();
    else if (shapes.length > 0) this.#offer([]);
  }

  /** It is not: what it brought must not be stored. */
  failed(): void {
    this.#offer([]);
  }

  /** A part of it may be durable: what it brought has to be stored as it was. */
  partLeft(shapes: readonly Relation[]): void {
    const before = shapes.map(
      ({ oid }) => [oid, this.#history.shapeOf(oid)] as const,
    );
    this.#hand(new Map([...this.#history.unstored, ...before]));
  }

  /** The checkpoint has written what it was handed. */
  stored(): void {
    if (this.#offered.size > 0) this.#history.stored(this.#offered);
    this.#offer([]);
  }

  #offer(shapes: readonly Relation[]): void {
    const { unstored, known } = this.#history;
    if (this.#offered.size + unstored.size + shapes.length === 0) return;
    if (shapes.length === 0) {
      this.#hand(new Map(unstored), known);
      return;
    }
    const then = this.#history.with(shapes);
    this.#hand(then.unstored, then.known);
  }

  #hand(relations: UnstoredRelations, known = this.#history.known): void {
    this.#offered = relations;
    this.#keeper?.keepRelations?.(
      relations.size === 0
        ? null
        : writeRelations(relations, this.#history.nextNumber, (relation) =>
            known.owns(relation),
          ),
    );
  }
}
