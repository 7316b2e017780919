import { escapeIdentifier } from 'pg';
import type { Change, Row } from '../../lib/engine/model/change.js';

/** A piece of SQL and what its places stand for. */
export interface Condition {
  readonly sql: string;
  readonly values: unknown[];
}

/** Name of the table of the same name, for SQL. */
export function tableOf({ schema, table }: Change): string {
  return `${escapeIdentifier(schema)}.${escapeIdentifier(table)}`;
}

/** Columns of the replica identity. */
export function keyOf({ columns }: Change): string[] {
  return columns.filter(({ key }) => key).map(({ name }) => name);
}

export function pick(record: Row, columns: readonly string[]): Row {
  return Object.fromEntries(columns.map((column) => [column, record[column]]));
}

/**
 * True for rows with these values.
 *
 * @param offset - places that are taken
 */
export function condition(identity: Row, offset: number): Condition {
  const terms = Object.keys(identity).map(
    (column, index) =>
      `${escapeIdentifier(column)} is not distinct from $${offset + index + 1}`,
  );
  return { sql: terms.join(' and '), values: Object.values(identity) };
}

/** Sets these values in an UPDATE; its places are the first. */
export function assignments(record: Row): string {
  return Object.keys(record)
    .map((column, index) => `${escapeIdentifier(column)} = $${index + 1}`)
    .join(', ');
}

/** An INSERT of these values, of one at least. */
export function insertion(table: string, record: Row): string {
  const columns = Object.keys(record);
  const places = columns.map((_, index) => `$${index + 1}`).join(', ');
  return `insert into ${table} (${columns.map(escapeIdentifier).join(', ')}) values (${places})`;
}
