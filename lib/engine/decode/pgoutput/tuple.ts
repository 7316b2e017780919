import type { OldRow, Row } from '../../model/change.js';
import type { ByteReader } from '../byte-reader.js';
import { setColumn } from '../../model/set-column.js';
import { MalformedMessage } from '../malformed-message.js';
import {
  type ColumnLayout,
  parseValue,
  type RowLayout,
} from '../row-layout.js';

const NULL = 0x6e; // n
const TEXT = 0x74; // t
const UNCHANGED = 0x75; // u

/** Tags of the tuples inside row messages. */
export const NEW_TUPLE = 0x4e; // N
export const KEY_TUPLE = 0x4b; // K
export const OLD_TUPLE = 0x4f; // O

/** Stands for a TOASTed value that the statement left alone; never leaves this file. */
const notSent = Symbol('not sent');

/**
 * Reads a row of which every value must be there. The server leaves one out of an insert when a row filter made
 * that insert of an update and the old row under the default identity does not hold the TOASTed value; a sink would
 * write such a row as NULL.
 */
export function readWholeRow(reader: ByteReader, layout: RowLayout): Row {
  readColumnCount(reader, layout);
  const record: Row = {};
  for (const column of layout.columns) {
    setColumn(record, column.name, readSentValue(reader, column));
  }
  return record;
}

/**
 * Reads the new row of an update. A value that was not sent is taken from the old row where that holds it;
 * otherwise the name of its column goes to `unchanged`.
 */
export function readNewRow(
  reader: ByteReader,
  layout: RowLayout,
  old: OldRow<Row> | null,
  unchanged: string[],
): Row {
  readColumnCount(reader, layout);
  const record: Row = {};
  for (const column of layout.columns) {
    const { name } = column;
    const value = readValue(reader, column);
    if (value !== notSent) {
      setColumn(record, name, value);
    } else if (old !== null && (old.kind === 'full' || column.key)) {
      setColumn(record, name, old.record[name]);
    } else {
      unchanged.push(name);
    }
  }
  return record;
}

/** Reads the old row that follows the tag. The server sets the columns beside a key to NULL; they are left out. */
export function readOldRow(
  reader: ByteReader,
  layout: RowLayout,
  tag: number,
): OldRow<Row> {
  if (tag === OLD_TUPLE) {
    return { kind: 'full', record: readWholeRow(reader, layout) };
  }
  readColumnCount(reader, layout);
  const record: Row = {};
  for (const column of layout.columns) {
    if (column.key || !layout.keyed) {
      setColumn(record, column.name, readSentValue(reader, column));
    } else {
      skipValue(reader);
    }
  }
  return { kind: 'key', record };
}

function readColumnCount(reader: ByteReader, layout: RowLayout): void {
  if (reader.int16() !== layout.columns.length) {
    throw new MalformedMessage(
      'number of columns differs from the announced table',
    );
  }
}

function readSentValue(reader: ByteReader, column: ColumnLayout): unknown {
  const value = readValue(reader, column);
  if (value === notSent) {
    throw new MalformedMessage(
      `${column.label} came without its value`,
      'insert_incomplete',
    );
  }
  return value;
}

function readValue(reader: ByteReader, column: ColumnLayout): unknown {
  switch (reader.uint8()) {
    case TEXT:
      return parseValue(column, reader.text(reader.length()));
    case NULL:
      return null;
    case UNCHANGED:
      return notSent;
    default:
      throw new MalformedMessage('unknown kind of column value');
  }
}

function skipValue(reader: ByteReader): void {
  switch (reader.uint8()) {
    case TEXT:
      reader.skip(reader.length());
      return;
    case NULL:
    case UNCHANGED:
      return;
    default:
      throw new MalformedMessage('unknown kind of column value');
  }
}
