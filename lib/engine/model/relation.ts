/**
 * How a table identifies the old row of an update or delete.
 *
 * @see {@link https://www.postgresql.org/docs/current/sql-altertable.html | ALTER TABLE … REPLICA IDENTITY}
 */
export type ReplicaIdentity = 'default' | 'nothing' | 'full' | 'index';

/** One published column, as the server announced it before the row that carries it. */
export interface Column {
  readonly name: string;
  /** OID of the declared type; for a domain, the domain's own. */
  readonly typeOid: number;
  /** Type name without schema (`int4`, `_text`, `mood`), or the OID as text when the server did not name it. */
  readonly type: string;
  /** `atttypmod`: length or precision; -1 when the type has none. */
  readonly typeModifier: number;
  /** Part of the replica identity. */
  readonly key: boolean;
}

/** The shape of a published table at one point of the stream. */
export interface Relation {
  /** OID of the table. */
  readonly oid: number;
  readonly schema: string;
  readonly table: string;
  /** `schema.table`, the text that {@link Change.relation} carries. */
  readonly name: string;
  readonly replicaIdentity: ReplicaIdentity;
  /** In the order of the table; only published columns. */
  readonly columns: readonly Column[];
}

/** The shape of a table as a message or the catalog tells it, before its types have names. */
export interface TableShape extends Omit<Relation, 'name' | 'columns'> {
  readonly columns: readonly Omit<Column, 'type'>[];
}
