import type { TypeTable } from '../values/type-table.js';
import type { ValueParser } from '../values/value-parser.js';
import type { Relation, TableShape } from '../model/relation.js';
import { errorClass } from '../model/error-class.js';
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

/** Binds the types to the columns. */
export function rowLayout(shape: TableShape, types: ColumnTypes): RowLayout {
  const { oid, schema, table, replicaIdentity } = shape;
  const relationName = `${schema}.${table}`;
  return {
    relation: {
      oid,
      schema,
      table,
      name: relationName,
      replicaIdentity,
      columns: shape.columns.map(({ name, typeOid, typeModifier, key }) => ({
        name,
        typeOid,
        type: types.name(typeOid),
        typeModifier,
        key,
      })),
    },
    columns: shape.columns.map(({ name, key, typeOid }) => ({
      name,
      label: `column ${JSON.stringify(name)} of ${relationName}`,
      key,
      parse: types.parser(typeOid),
    })),
    keyed: shape.columns.some(({ key }) => key),
  };
}

/** Reads a value that is not NULL. */
export function parseValue(
  { parse, label }: ColumnLayout,
  text: string,
): unknown {
  try {
    return parse(text);
  } catch (error) {
    throw new MalformedMessage(
      `the parser of ${label} threw ${errorClass(error)}`,
    );
  }
}
