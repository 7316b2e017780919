import type {
  Column,
  ReplicaIdentity,
  TableShape,
} from '../../model/relation.js';
import type { ByteReader } from '../byte-reader.js';
import { MalformedMessage } from '../malformed-message.js';

/** Reads the rest of a Relation message. */
export function readRelationHeader(reader: ByteReader): TableShape {
  const oid = reader.uint32();
  const schema = readNamespace(reader);
  const table = reader.cstring();
  const replicaIdentity = replicaIdentityOf(reader.uint8());
  const count = reader.int16();
  if (count < 0) throw new MalformedMessage('negative number of columns');
  const columns: Omit<Column, 'type'>[] = [];
  const names = new Set<string>();
  for (let i = 0; i < count; i++) {
    const flags = reader.uint8();
    if (flags > 1) throw new MalformedMessage('unknown column flags');
    const name = reader.cstring();
    const typeOid = reader.uint32();
    const typeModifier = reader.int32();
    columns.push({ name, typeOid, typeModifier, key: flags === 1 });
    names.add(name);
  }
  if (names.size !== count) {
    throw new MalformedMessage('two columns of one name');
  }
  reader.end();
  return { oid, schema, table, replicaIdentity, columns };
}

/** The wire has an empty string for `pg_catalog`. */
export function readNamespace(reader: ByteReader): string {
  return reader.cstring() || 'pg_catalog';
}

function replicaIdentityOf(letter: number): ReplicaIdentity {
  switch (String.fromCharCode(letter)) {
    case 'd':
      return 'default';
    case 'n':
      return 'nothing';
    case 'f':
      return 'full';
    case 'i':
      return 'index';
    default:
      throw new MalformedMessage('unknown replica identity');
  }
}
