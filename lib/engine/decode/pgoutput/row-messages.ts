import type {
  DeleteMessage,
  InsertMessage,
  TruncateMessage,
  UpdateMessage,
} from '../../model/replication-message.js';
import type { ByteReader } from '../byte-reader.js';
import { MalformedMessage } from '../malformed-message.js';
import type { RowLayout } from '../row-layout.js';
import type { RowLayouts } from './row-layouts.js';
import {
  KEY_TUPLE,
  NEW_TUPLE,
  OLD_TUPLE,
  readNewRow,
  readOldRow,
  readWholeRow,
} from './tuple.js';

const CASCADE = 1;
const RESTART_IDENTITY = 2;

export function readInsert(
  reader: ByteReader,
  layouts: RowLayouts,
): InsertMessage {
  const layout = readLayout(reader, layouts);
  if (reader.uint8() !== NEW_TUPLE) {
    throw new MalformedMessage('no new tuple');
  }
  const record = readWholeRow(reader, layout);
  reader.end();
  return { kind: 'insert', relation: layout.relation, record };
}

export function readUpdate(
  reader: ByteReader,
  layouts: RowLayouts,
): UpdateMessage {
  const layout = readLayout(reader, layouts);
  let tag = reader.uint8();
  let old = null;
  if (tag === KEY_TUPLE || tag === OLD_TUPLE) {
    old = readOldRow(reader, layout, tag);
    tag = reader.uint8();
  }
  if (tag !== NEW_TUPLE) throw new MalformedMessage('no new tuple');
  const unchanged: string[] = [];
  const record = readNewRow(reader, layout, old, unchanged);
  reader.end();
  return { kind: 'update', relation: layout.relation, record, unchanged, old };
}

export function readDelete(
  reader: ByteReader,
  layouts: RowLayouts,
): DeleteMessage {
  const layout = readLayout(reader, layouts);
  const tag = reader.uint8();
  if (tag !== KEY_TUPLE && tag !== OLD_TUPLE) {
    throw new MalformedMessage('no old tuple');
  }
  const old = readOldRow(reader, layout, tag);
  reader.end();
  return { kind: 'delete', relation: layout.relation, old };
}

export function readTruncate(
  reader: ByteReader,
  layouts: RowLayouts,
): TruncateMessage {
  const count = reader.length();
  const options = reader.uint8();
  if ((options & ~(CASCADE | RESTART_IDENTITY)) !== 0) {
    throw new MalformedMessage('unknown options');
  }
  const relations = [];
  for (let i = 0; i < count; i++) {
    relations.push(readLayout(reader, layouts).relation);
  }
  reader.end();
  return {
    kind: 'truncate',
    relations,
    cascade: (options & CASCADE) !== 0,
    restartIdentity: (options & RESTART_IDENTITY) !== 0,
  };
}

function readLayout(reader: ByteReader, layouts: RowLayouts): RowLayout {
  const oid = reader.uint32();
  const layout = layouts.get(oid);
  if (layout === undefined) {
    throw new MalformedMessage(
      `table ${oid} was never announced`,
      'protocol_violation',
    );
  }
  return layout;
}
