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

/** Inserts whole rows, or overwrites those that have their keys. PostgreSQL reads each value as the type of its column. */
export function insertRows(
  relation: keyof Shop,
  records: readonly Values[],
): QueryConfig {
  const { name, key, columns } = TABLES[relation];
  const overwrite = columns.map((column) => `${column} = EXCLUDED.${column}`);
  return {
    name: `insert many ${name}`,
    text: `INSERT INTO ${name} (${columns.join(', ')})
      SELECT ${columns.join(', ')} FROM json_populate_recordset(NULL::${name}, $1)
      ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${overwrite.join(', ')}`,
    values: [JSON.stringify(records)],
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

/** Empties a table before a snapshot fills it. */
export function emptyTable(relation: keyof Shop): QueryConfig {
  return {
    text: `WITH anew AS (DELETE FROM copied WHERE table_name = $1) DELETE FROM ${TABLES[relation].name}`,
    values: [relation],
  };
}

/** Writes down which rows a snapshot has brought, for the proof that none came twice. */
export function noteCopied(
  relation: keyof Shop,
  records: readonly Values[],
): QueryConfig {
  const { key } = TABLES[relation];
  const keys = records.map((record) =>
    JSON.stringify(key.map((column) => record[column])),
  );
  return {
    name: 'note copied',
    text: 'INSERT INTO copied (table_name, keys) VALUES ($1, $2)',
    values: [relation, keys],
  };
}

function matching(key: readonly string[], offset: number): string {
  return key
    .map((column, index) => `${column} = $${offset + index + 1}`)
    .join(' AND ');
}
