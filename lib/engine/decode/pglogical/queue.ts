import type { Row } from '../../model/change.js';
import type { CatalogTable, TableName } from '../../model/relation.js';
import { MalformedMessage } from '../malformed-message.js';
import type { WireTable } from './relation-message.js';

const TEXT = 25;

/** What the message type of a truncation is. */
const TRUNCATE = 'T';

/**
 * Whether this is the table through which pglogical talks to its own subscribers. It is part of every stream, and a
 * truncation is told by it alone.
 */
export function isQueue({ schema, table }: TableName): boolean {
  return schema === 'pglogical' && table === 'queue';
}

/** Its columns, all of which are read as text. */
export function queueTable({
  oid,
  schema,
  table,
  columns,
}: WireTable): CatalogTable {
  return {
    oid,
    schema,
    table,
    replicaIdentity: 'nothing',
    columns: columns.map(({ name }) => ({
      name,
      typeOid: TEXT,
      typeModifier: -1,
      key: false,
    })),
    generated: [],
  };
}

/** Which table a row of the queue says was truncated; `null` when it says something else. */
export function truncatedTable(row: Row): TableName | null {
  const { message_type: kind, message } = row;
  if (kind !== TRUNCATE) return null;
  const content: unknown =
    typeof message === 'string' ? parsed(message) : undefined;
  if (
    typeof content !== 'object' ||
    content === null ||
    !('schema_name' in content) ||
    !('table_name' in content) ||
    typeof content.schema_name !== 'string' ||
    typeof content.table_name !== 'string'
  ) {
    throw new MalformedMessage('a truncation without the name of its table');
  }
  return { schema: content.schema_name, table: content.table_name };
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
