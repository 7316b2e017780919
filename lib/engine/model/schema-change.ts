import type { Lsn } from './lsn.js';
import type { Relation } from './relation.js';

/** What became of a table between two announcements of its shape. */
export type SchemaChangeKind =
  | 'column_added'
  | 'column_dropped'
  | 'type_changed'
  | 'replica_identity_changed'
  /** Another table has the name now. */
  | 'table_replaced'
  /** The table has another name now, or is in another schema. */
  | 'table_renamed';

/** A change of the shape of a published table. Structure only: names and types, never a row value. */
export interface SchemaChange {
  /** A destructive change may leave the sink's copy wrong, so it halts unless the sink accepts it. */
  readonly effect: 'additive' | 'destructive';
  readonly change: SchemaChangeKind;
  /** The name under which the table was known: `schema.table`. */
  readonly relation: string;
  /** What changed, as a phrase: names of columns and types. */
  readonly detail: string;
  /** The last shape that was known. */
  readonly before: Relation;
  /** The shape of the rows that follow. */
  readonly after: Relation;
}

/** Where a schema change was noticed. */
export interface SchemaChangeContext {
  readonly pipeline: string;
  readonly slotName: string;
  /** Commit position of the transaction that is the first to carry the new shape. */
  readonly commitLsn: Lsn;
}
