import type { ByteReader } from '../byte-reader.js';
import type { TableName } from '../../model/relation.js';
import { MalformedMessage } from '../malformed-message.js';
import { readFlags, readTerminated } from './fields.js';

const COLUMNS = 0x41; // A
const COLUMN = 0x43; // C
const NAME = 0x4e; // N

/** A column as a Relation message has it: without its type. */
export interface WireColumn {
  readonly name: string;
  /** Part of the index that is the replica identity; so none is under FULL. */
  readonly key: boolean;
}

/** What a Relation message says. */
export interface WireTable extends TableName {
  readonly oid: number;
  readonly columns: readonly WireColumn[];
}

/** Reads the rest of a Relation message. */
export function readWireTable(reader: ByteReader): WireTable {
  readFlags(reader);
  const oid = reader.uint32();
  const schema = readTerminated(reader, reader.uint8());
  const table = readTerminated(reader, reader.uint8());
  readMark(reader, COLUMNS);
  const count = reader.int16();
  if (count < 0) throw new MalformedMessage('negative number of columns');
  const columns: WireColumn[] = [];
  const names = new Set<string>();
  for (let i = 0; i < count; i++) {
    const column = readColumn(reader);
    columns.push(column);
    names.add(column.name);
  }
  if (names.size !== count) {
    throw new MalformedMessage('two columns of one name');
  }
  reader.end();
  return { oid, schema, table, columns };
}

function readColumn(reader: ByteReader): WireColumn {
  readMark(reader, COLUMN);
  const flags = reader.uint8();
  if (flags > 1) throw new MalformedMessage('unknown column flags');
  readMark(reader, NAME);
  const length = reader.int16();
  if (length < 0) throw new MalformedMessage('negative length');
  return { name: readTerminated(reader, length), key: flags === 1 };
}

function readMark(reader: ByteReader, mark: number): void {
  if (reader.uint8() !== mark) {
    throw new MalformedMessage('unknown part of the description');
  }
}
