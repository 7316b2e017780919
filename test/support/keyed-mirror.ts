import { type ClientBase, escapeIdentifier } from 'pg';
import type { Change, Row } from '../../lib/engine/model/change.js';
import {
  assignments,
  condition,
  insertion,
  keyOf,
  pick,
  tableOf,
} from './change-sql.js';

/**
 * Applies a change to a table of the same name by its key, whatever is there: after changes that come again all is as it
 * was. Works for tables whose replica identity is their primary key, and values of the mode `text`.
 */
export async function applyByKey(
  client: ClientBase,
  change: Change,
): Promise<void> {
  switch (change.op) {
    case 'insert':
      return put(client, change, change.record);
    case 'update':
      return change.old === null
        ? put(client, change, change.record)
        : move(
            client,
            change,
            change.record,
            pick(change.old.record, keyOf(change)),
          );
    case 'delete':
      return remove(client, change, pick(change.old.record, keyOf(change)));
    case 'truncate':
      await client.query(`truncate ${tableOf(change)}`);
  }
}

/** Columns that the record does not have keep what they hold. */
async function put(
  client: ClientBase,
  change: Change,
  record: Row,
): Promise<void> {
  const key = keyOf(change).map(escapeIdentifier).join(', ');
  const updates = Object.keys(record)
    .map(escapeIdentifier)
    .map((column) => `${column} = excluded.${column}`);
  await client.query(
    `${insertion(tableOf(change), record)} on conflict (${key}) do update set ${updates.join(', ')}`,
    Object.values(record),
  );
}

/** Gives a row another key. One that has it already has moved before. */
async function move(
  client: ClientBase,
  change: Change,
  record: Row,
  old: Row,
): Promise<void> {
  const table = tableOf(change);
  const there = condition(pick(record, keyOf(change)), 0);
  const { rowCount } = await client.query(
    `select from ${table} where ${there.sql}`,
    there.values,
  );
  if (rowCount === 0) {
    const values = Object.values(record);
    const from = condition(old, values.length);
    const moved = await client.query(
      `update ${table} set ${assignments(record)} where ${from.sql}`,
      [...values, ...from.values],
    );
    if (moved.rowCount === 1) return;
  } else await remove(client, change, old);
  await put(client, change, record);
}

async function remove(
  client: ClientBase,
  change: Change,
  key: Row,
): Promise<void> {
  const there = condition(key, 0);
  await client.query(
    `delete from ${tableOf(change)} where ${there.sql}`,
    there.values,
  );
}
