import type { TypeTable } from '../../values/type-table.js';
import type { ValueParser } from '../../values/value-parser.js';
import type {
  Column,
  Relation,
  ReplicaIdentity,
} from '../../model/relation.js';
import type { ByteReader } from './byte-reader.js';
import { MalformedMessage } from './malformed-message.js';

/** What reading rows needs of a type table. */
export type ColumnTypes = Pick<
  TypeTable,
  'announce' | 'unresolved' | 'parser' | 'name'
>;

/** One column of a {@link RowLayout}. */
export interface ColumnLayout {
  readonly name: string;
  /** The column as fault texts name it. */
  readonly label: string;
  readonly key: boolean;
  readonly parse: ValueParser;
}

/** How the rows of a table are read until it is announced again. */
export interface RowLayout {
  readonly relation: Relation;
  readonly columns: readonly ColumnLayout[];
  /** Whether any column belongs to the replica identity. */
  readonly keyed: boolean;
}

/** A Relation message as it is on the wire, before its types are known. */
export interface RelationHeader extends Omit<Relation, 'name' | 'columns'> {
  readonly columns: readonly Omit<Column, 'type'>[];
}

/** Binds the types to the announced columns. */
export function rowLayout(
  header: RelationHeader,
  types: ColumnTypes,
): RowLayout {
  const { oid, schema, table, replicaIdentity } = header;
  const relationName = `${schema}.${table}`;
  return {
    relation: {
      oid,
      schema,
      table,
      name: relationName,
      replicaIdentity,
      columns: header.columns.map(({ name, typeOid, typeModifier, key }) => ({
        name,
        typeOid,
        type: types.name(typeOid),
        typeModifier,
        key,
      })),
    },
    columns: header.columns.map(({ name, key, typeOid }) => ({
      name,
      label: `column ${JSON.stringify(name)} of ${relationName}`,
      key,
      parse: types.parser(typeOid),
    })),
    keyed: header.columns.some(({ key }) => key),
  };
}

/** Reads the rest of a Relation message. */
export function readRelationHeader(reader: ByteReader): RelationHeader {
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
