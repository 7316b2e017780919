import { type ClientBase, escapeIdentifier, type QueryResult } from 'pg';
import type { Change, Row } from '../../lib/engine/model/change.js';
import { formatLsn } from '../../lib/engine/model/lsn.js';
import type { Transaction } from '../../lib/engine/model/transaction.js';
import type { CheckpointTable } from '../../lib/engine/checkpoint/checkpoint-table.js';

/** One row for each transaction that was applied; nothing keeps a second one out. */
export const CREATE_LEDGER =
  'create table ledger(slot_name text, commit_lsn pg_lsn, changes int)';

/**
 * Applies a transaction to tables of the same names, with its checkpoint and a row of the ledger, inside the open
 * transaction of `client`. Works for values of the mode `text`.
 *
 * @returns `false` when it was applied before
 */
export async function mirror(
  client: ClientBase,
  checkpoints: CheckpointTable,
  transaction: Transaction,
): Promise<boolean> {
  const isNew = await checkpoints.advance(
    (sql, values) => client.query(sql, [...values]),
    transaction,
  );
  if (!isNew) return false;
  let changes = 0;
  for await (const change of transaction.changes) {
    await write(client, change);
    changes += 1;
  }
  await client.query('insert into ledger values ($1, $2, $3)', [
    transaction.slotName,
    formatLsn(transaction.commitLsn),
    changes,
  ]);
  return true;
}

async function write(client: ClientBase, change: Change): Promise<void> {
  const table = `${escapeIdentifier(change.schema)}.${escapeIdentifier(change.table)}`;
  switch (change.op) {
    case 'insert':
      return insert(client, table, change.record);
    case 'update': {
      // Without an old row the identity is as it was.
      const keys = change.columns.filter(({ key }) => key);
      const old = change.old ?? {
        kind: 'key',
        record: pick(
          change.record,
          keys.map(({ name }) => name),
        ),
      };
      return update(client, table, change.record, old.record);
    }
    case 'delete': {
      const where = condition(change.old.record, 0);
      return expectOne(
        await client.query(
          `delete from ${table} where ctid = (select ctid from ${table} where ${where.sql} limit 1)`,
          where.values,
        ),
        table,
      );
    }
    case 'truncate':
      await client.query(`truncate ${table}`);
  }
}

async function insert(
  client: ClientBase,
  table: string,
  record: Row,
): Promise<void> {
  const columns = Object.keys(record);
  if (columns.length === 0) {
    await client.query(`insert into ${table} default values`);
    return;
  }
  const places = columns.map((_, index) => `$${index + 1}`).join(', ');
  await client.query(
    `insert into ${table} (${columns.map(escapeIdentifier).join(', ')}) values (${places})`,
    Object.values(record),
  );
}

async function update(
  client: ClientBase,
  table: string,
  record: Row,
  old: Row,
): Promise<void> {
  const columns = Object.keys(record);
  if (columns.length === 0) return;
  const assignments = columns.map(
    (column, index) => `${escapeIdentifier(column)} = $${index + 1}`,
  );
  const where = condition(old, columns.length);
  expectOne(
    await client.query(
      `update ${table} set ${assignments.join(', ')} where ctid = (select ctid from ${table} where ${where.sql} limit 1)`,
      [...Object.values(record), ...where.values],
    ),
    table,
  );
}

function condition(
  identity: Row,
  offset: number,
): { readonly sql: string; readonly values: unknown[] } {
  const terms = Object.keys(identity).map(
    (column, index) =>
      `${escapeIdentifier(column)} is not distinct from $${offset + index + 1}`,
  );
  return { sql: terms.join(' and '), values: Object.values(identity) };
}

function pick(record: Row, columns: readonly string[]): Row {
  return Object.fromEntries(columns.map((column) => [column, record[column]]));
}

/** A row that is not there means that a change was lost or applied twice. */
function expectOne({ rowCount }: QueryResult, table: string): void {
  if (rowCount !== 1) throw new Error(`The mirror of ${table} lacks a row.`);
}
