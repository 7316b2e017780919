import type { Row } from '../../model/change.js';
import type { PublishedTable } from '../../server/published-table.js';
import type { RawRow } from '../raw-row.js';

/** Tells the rows of a table apart, as the server's text. No text of PostgreSQL holds a NUL, and NULL is told from the empty text. */
export type RowKey = string;

const SEPARATOR = '\0';
const VALUE = 'v';
const NULL = 'n';

/** By which columns the rows of a table are told apart: those of its replica identity, in the order of the table. */
export interface RowIdentity {
  readonly columns: readonly string[];
  /** The same for the same columns. */
  readonly text: string;
}

/** The identity that a table has, or that the stream announces for it. */
export function identityOf(
  columns: readonly { readonly name: string; readonly key: boolean }[],
): RowIdentity {
  const names = columns.filter(({ key }) => key).map(({ name }) => name);
  return { columns: names, text: names.join(SEPARATOR) };
}

/**
 * By which columns rows are told apart that were read. REPLICA IDENTITY FULL of a partitioned table says nothing of its partitions, which have
 * one of their own: old rows may lack all but the key then, and the key is in whole ones too.
 */
export function identityOfTable({
  replicaIdentity,
  columns,
  orderKey,
}: Pick<
  PublishedTable,
  'replicaIdentity' | 'columns' | 'orderKey'
>): RowIdentity {
  if (replicaIdentity !== 'full' || orderKey === null)
    return identityOf(columns);
  const key = new Set(orderKey.map(({ name }) => name));
  return identityOf(columns.map(({ name }) => ({ name, key: key.has(name) })));
}

/** `null` when a column of the identity is not there, or not as text. */
export function keyOfRecord(
  record: Row,
  { columns }: RowIdentity,
): RowKey | null {
  const values: (string | null)[] = [];
  for (const name of columns) {
    const value = record[name];
    if (value !== null && typeof value !== 'string') return null;
    values.push(value);
  }
  return rowKey(values);
}

/** @param places - of the columns of the identity in the row */
export function keyOfRow(row: RawRow, places: readonly number[]): RowKey {
  return rowKey(places.map((place) => row[place] ?? null));
}

/** @param values - of the columns of the identity, in its order */
export function rowKey(values: RawRow): RowKey {
  return values
    .map((value) => (value === null ? NULL : VALUE + value))
    .join(SEPARATOR);
}

/** The values of the columns of the identity, in its order. */
export function valuesOf(key: RowKey): RawRow {
  return key
    .split(SEPARATOR)
    .map((part) => (part === NULL ? null : part.slice(VALUE.length)));
}
