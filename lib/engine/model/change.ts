import type { Lsn } from './lsn.js';
import type { Column } from './relation.js';

/** Column name to value. What the values are is decided by the option `types`. */
export type Row = Record<string, unknown>;

/** The tables of a pipeline: `'schema.table'` to the type of its row. */
export type Tables = Record<string, Row>;

interface ChangeBase<K extends string> {
  /** `schema.table`; tells the members of {@link Change} apart. */
  readonly relation: K;
  readonly schema: string;
  readonly table: string;
  /** Place within the transaction, from 0; shared with messages. */
  readonly ordinal: number;
  /** Start of the commit record of the transaction; see {@link Transaction.commitLsn}. */
  readonly commitLsn: Lsn;
  /** Published columns as they were when the row was written. */
  readonly columns: readonly Column[];
}

/** The old row: its replica identity columns (`key`), or all of it under `REPLICA IDENTITY FULL`. */
export type OldRow<R> =
  | { readonly kind: 'key'; readonly record: Partial<R> }
  | { readonly kind: 'full'; readonly record: R };

/** A row that was inserted, all of it. */
export interface Insert<
  K extends string = string,
  R = Row,
> extends ChangeBase<K> {
  readonly op: 'insert';
  readonly record: R;
}

/** A row that was updated. */
export interface Update<
  K extends string = string,
  R = Row,
> extends ChangeBase<K> {
  readonly op: 'update';
  /** The new row without the columns named in {@link Update.unchanged}. */
  readonly record: Partial<R>;
  /**
   * Large (TOASTed) columns that the statement left alone and the server therefore did not send.
   * A sink must leave them alone too.
   */
  readonly unchanged: readonly (keyof R & string)[];
  /** `null` under the default identity when no key column changed. */
  readonly old: OldRow<R> | null;
}

/** A row that was deleted; only {@link Delete.old} tells which. */
export interface Delete<
  K extends string = string,
  R = Row,
> extends ChangeBase<K> {
  readonly op: 'delete';
  readonly old: OldRow<R>;
}

/** A table that was truncated. */
export interface Truncate<K extends string = string> extends ChangeBase<K> {
  readonly op: 'truncate';
  /** The statement had `CASCADE`. */
  readonly cascade: boolean;
  /** The statement had `RESTART IDENTITY`. */
  readonly restartIdentity: boolean;
  /** Every relation of the same statement, `schema.table`, in the server's order; each has its own change. */
  readonly together: readonly string[];
}

/** One change of one table. Narrow by `relation` and `op`. */
export type Change<T = Tables> = {
  [K in keyof T & string]:
    Insert<K, T[K]> | Update<K, T[K]> | Delete<K, T[K]> | Truncate<K>;
}[keyof T & string];
