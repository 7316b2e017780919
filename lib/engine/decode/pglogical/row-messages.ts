import type {
  DeleteMessage,
  InsertMessage,
  UpdateMessage,
} from '../../model/replication-message.js';
import type { ByteReader } from '../byte-reader.js';
import { MalformedMessage } from '../malformed-message.js';
import {
  KEY_TUPLE,
  NEW_TUPLE,
  readNewRow,
  readOldRow,
  readWholeRow,
} from '../tuple.js';
import { readFlags } from './fields.js';
import { PGLOGICAL_TUPLES } from './tuple-format.js';
import type { WireLayout } from './wire-layout.js';

/** The tables that a connection has announced, by OID. */
export type WireLayouts = ReadonlyMap<number, WireLayout>;

export function readInsert(
  reader: ByteReader,
  layouts: WireLayouts,
): InsertMessage {
  const layout = readLayout(reader, layouts);
  if (reader.uint8() !== NEW_TUPLE) throw new MalformedMessage('no new tuple');
  const record = readWholeRow(reader, layout, PGLOGICAL_TUPLES);
  reader.end();
  return { kind: 'insert', relation: layout.relation, record };
}

export function readUpdate(
  reader: ByteReader,
  layouts: WireLayouts,
): UpdateMessage {
  const layout = readLayout(reader, layouts);
  let tag = reader.uint8();
  let old = null;
  if (tag === KEY_TUPLE) {
    old = readOldRow(reader, layout, PGLOGICAL_TUPLES, layout.oldTuple);
    tag = reader.uint8();
  }
  if (tag !== NEW_TUPLE) throw new MalformedMessage('no new tuple');
  const unchanged: string[] = [];
  const record = readNewRow(reader, layout, PGLOGICAL_TUPLES, old, unchanged);
  reader.end();
  return { kind: 'update', relation: layout.relation, record, unchanged, old };
}

export function readDelete(
  reader: ByteReader,
  layouts: WireLayouts,
): DeleteMessage {
  const layout = readLayout(reader, layouts);
  if (reader.uint8() !== KEY_TUPLE) throw new MalformedMessage('no old tuple');
  const old = readOldRow(reader, layout, PGLOGICAL_TUPLES, layout.oldTuple);
  reader.end();
  return { kind: 'delete', relation: layout.relation, old };
}

function readLayout(reader: ByteReader, layouts: WireLayouts): WireLayout {
  readFlags(reader);
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
