import type { OldRow, Row } from '../../model/change.js';
import type {
  DeleteMessage,
  InsertMessage,
  TruncateMessage,
  UpdateMessage,
} from '../../model/replication-message.js';
import { setColumn } from '../../model/set-column.js';
import { MalformedMessage } from '../malformed-message.js';
import {
  type ColumnLayout,
  parseValue,
  type RowLayout,
} from '../row-layout.js';
import type { FittedRow, PlacedRow } from './known-table.js';

export function insertMessage({ layout, columns }: FittedRow): InsertMessage {
  return {
    kind: 'insert',
    relation: layout.relation,
    record: wholeRow(columns, layout),
  };
}

export function updateMessage(row: FittedRow): UpdateMessage {
  const { layout, columns } = row;
  const old = oldRowOfUpdate(row);
  const record: Row = {};
  const unchanged: string[] = [];
  layout.columns.forEach((column, index) => {
    const { name, key } = column;
    const text = columns[index];
    if (text !== undefined) {
      setColumn(record, name, valueOf(text, column));
    } else if (old !== null && (old.kind === 'full' || key)) {
      setColumn(record, name, old.record[name]);
    } else {
      unchanged.push(name);
    }
  });
  return { kind: 'update', relation: layout.relation, record, unchanged, old };
}

export function deleteMessage({ layout, identity }: FittedRow): DeleteMessage {
  return {
    kind: 'delete',
    relation: layout.relation,
    old: oldRow(identity, layout),
  };
}

/** The plugin writes one document for each table of a statement, and nothing of its options. */
export function truncateMessage({ layout }: FittedRow): TruncateMessage {
  return {
    kind: 'truncate',
    relations: [layout.relation],
    cascade: false,
    restartIdentity: false,
  };
}

/**
 * The plugin writes an old key in any case: that of the new row where the server has logged none. The server logs one when the key was changed, or
 * is TOASTed; then the new row lacks it.
 */
function oldRowOfUpdate({
  layout,
  columns,
  identity,
}: FittedRow): OldRow<Row> | null {
  const { replicaIdentity } = layout.relation;
  const wasLogged =
    replicaIdentity === 'full' ||
    layout.columns.some(
      ({ key }, index) => key && columns[index] !== identity[index],
    );
  return wasLogged ? oldRow(identity, layout) : null;
}

function oldRow(identity: PlacedRow, layout: RowLayout): OldRow<Row> {
  if (layout.relation.replicaIdentity === 'full')
    return { kind: 'full', record: wholeRow(identity, layout) };
  if (!layout.keyed) throw new MalformedMessage('no old row');
  const record: Row = {};
  layout.columns.forEach((column, index) => {
    if (column.key)
      setColumn(record, column.name, sentValue(identity[index], column));
  });
  return { kind: 'key', record };
}

function wholeRow(values: PlacedRow, layout: RowLayout): Row {
  const record: Row = {};
  layout.columns.forEach((column, index) => {
    setColumn(record, column.name, sentValue(values[index], column));
  });
  return record;
}

function sentValue(
  text: string | null | undefined,
  column: ColumnLayout,
): unknown {
  if (text === undefined)
    throw new MalformedMessage(
      `${column.label} came without its value`,
      'insert_incomplete',
    );
  return valueOf(text, column);
}

function valueOf(text: string | null, column: ColumnLayout): unknown {
  return text === null ? null : parseValue(column, text);
}
