import type { QueryConfig } from 'pg';
import { type Shop, TABLES } from '../schema.js';

// A statement with a name is planned once for each connection.

type Values = Readonly<Record<string, unknown>>;

/** Inserts a row, or overwrites the one that has its key. */
export function insertRow(relation: keyof Shop, record: Values): QueryConfig {
  const { name, key, columns } = TABLES[relation];
  const places = columns.map((_, index) => `$${index + 1}`);
  const overwrite = columns.map((column) => `${column} = EXCLUDED.${column}`);
  return {
    name: `insert ${name}`,
    text: `INSERT INTO ${name} (${columns.join(', ')}) VALUES (${places.join(', ')})
      ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${overwrite.join(', ')}`,
    values: columns.map((column) => record[column]),
  };
}

/** Sets the columns that the record has, in the row with the given key. */
export function updateRow(
  relation: keyof Shop,
  record: Values,
  oldKey: Values,
): QueryConfig {
  const { name, key, columns } = TABLES[relation];
  const present = columns.filter((column) => Object.hasOwn(record, column));
  const assignments = present.map(
    (column, index) => `${column} = $${index + 1}`,
  );
  return {
    name: `update ${name} ${present.join()}`,
    text: `UPDATE ${name} SET ${assignments.join(', ')} WHERE ${matching(key, present.length)}`,
    values: [
      ...present.map((column) => record[column]),
      ...key.map((column) => oldKey[column]),
    ],
  };
}

/** Deletes the row with the given key. */
export function deleteRow(relation: keyof Shop, oldKey: Values): QueryConfig {
  const { name, key } = TABLES[relation];
  return {
    name: `delete ${name}`,
    text: `DELETE FROM ${name} WHERE ${matching(key, 0)}`,
    values: key.map((column) => oldKey[column]),
  };
}

/** Empties a table. */
export function truncateTable(relation: keyof Shop): QueryConfig {
  return { text: `TRUNCATE ${TABLES[relation].name}` };
}

function matching(key: readonly string[], offset: number): string {
  return key
    .map((column, index) => `${column} = $${offset + index + 1}`)
    .join(' AND ');
}
