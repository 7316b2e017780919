import type { ClientBase, QueryResult } from 'pg';
import type { Change, Row } from '../../lib/engine/model/change.js';
import { formatLsn } from '../../lib/engine/model/lsn.js';
import type { Transaction } from '../../lib/engine/model/transaction.js';
import type { CheckpointTable } from '../../lib/engine/checkpoint/checkpoint-table.js';
import {
  assignments,
  condition,
  insertion,
  keyOf,
  pick,
  tableOf,
} from './change-sql.js';

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
  const table = tableOf(change);
  switch (change.op) {
    case 'insert':
      return insert(client, table, change.record);
    case 'update':
      return update(
        client,
        table,
        change.record,
        // Without an old row the identity is as it was.
        change.old?.record ?? pick(change.record, keyOf(change)),
      );
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
  const values = Object.values(record);
  await client.query(
    values.length === 0
      ? `insert into ${table} default values`
      : insertion(table, record),
    values,
  );
}

async function update(
  client: ClientBase,
  table: string,
  record: Row,
  old: Row,
): Promise<void> {
  const values = Object.values(record);
  if (values.length === 0) return;
  const where = condition(old, values.length);
  expectOne(
    await client.query(
      `update ${table} set ${assignments(record)} where ctid = (select ctid from ${table} where ${where.sql} limit 1)`,
      [...values, ...where.values],
    ),
    table,
  );
}

/** A row that is not there means that a change was lost or applied twice. */
function expectOne({ rowCount }: QueryResult, table: string): void {
  if (rowCount !== 1) throw new Error(`The mirror of ${table} lacks a row.`);
}
