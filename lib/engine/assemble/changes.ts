import type {
  Delete,
  Insert,
  OldRow,
  Row,
  Truncate,
  Update,
} from '../model/change.js';
import { formatLsn, type Lsn } from '../model/lsn.js';
import type { Column, Relation } from '../model/relation.js';

/** What all changes share. `toJSON` gives the position as text, because JSON has no bigint. */
abstract class TableChange<Op extends string> {
  readonly op: Op;
  readonly relation: string;
  readonly schema: string;
  readonly table: string;
  readonly ordinal: number;
  readonly commitLsn: Lsn;
  readonly columns: readonly Column[];

  constructor(op: Op, ordinal: number, commitLsn: Lsn, relation: Relation) {
    this.op = op;
    this.relation = relation.name;
    this.schema = relation.schema;
    this.table = relation.table;
    this.ordinal = ordinal;
    this.commitLsn = commitLsn;
    this.columns = relation.columns;
  }

  protected common() {
    return {
      op: this.op,
      relation: this.relation,
      schema: this.schema,
      table: this.table,
      ordinal: this.ordinal,
      commitLsn: formatLsn(this.commitLsn),
      columns: this.columns,
    };
  }
}

export class InsertChange extends TableChange<'insert'> implements Insert {
  constructor(
    ordinal: number,
    commitLsn: Lsn,
    relation: Relation,
    readonly record: Row,
  ) {
    super('insert', ordinal, commitLsn, relation);
  }

  toJSON() {
    return { ...this.common(), record: this.record };
  }
}

export class UpdateChange extends TableChange<'update'> implements Update {
  constructor(
    ordinal: number,
    commitLsn: Lsn,
    relation: Relation,
    readonly record: Row,
    readonly unchanged: readonly string[],
    readonly old: OldRow<Row> | null,
  ) {
    super('update', ordinal, commitLsn, relation);
  }

  toJSON() {
    return {
      ...this.common(),
      record: this.record,
      unchanged: this.unchanged,
      old: this.old,
    };
  }
}

export class DeleteChange extends TableChange<'delete'> implements Delete {
  constructor(
    ordinal: number,
    commitLsn: Lsn,
    relation: Relation,
    readonly old: OldRow<Row>,
  ) {
    super('delete', ordinal, commitLsn, relation);
  }

  toJSON() {
    return { ...this.common(), old: this.old };
  }
}

export class TruncateChange
  extends TableChange<'truncate'>
  implements Truncate
{
  constructor(
    ordinal: number,
    commitLsn: Lsn,
    relation: Relation,
    readonly cascade: boolean,
    readonly restartIdentity: boolean,
    readonly together: readonly string[],
  ) {
    super('truncate', ordinal, commitLsn, relation);
  }

  toJSON() {
    return {
      ...this.common(),
      cascade: this.cascade,
      restartIdentity: this.restartIdentity,
      together: this.together,
    };
  }
}
