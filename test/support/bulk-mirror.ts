import type { ClientBase } from 'pg';
import { formatLsn } from '../../lib/engine/model/lsn.js';
import type { Transaction } from '../../lib/engine/model/transaction.js';
import type { CheckpointTable } from '../../lib/engine/checkpoint/checkpoint-table.js';

/** What {@link bulkMirror} applies transactions to. */
export const BULK_TABLE = 'create table t(id int primary key, pad text)';

const ROWS_A_STATEMENT = 1_000;

/**
 * As {@link mirror}, for large transactions of inserts into `t`: writes many rows with one statement.
 *
 * @param seen - told how many rows were read, each time before they are written
 */
export async function bulkMirror(
  client: ClientBase,
  checkpoints: CheckpointTable,
  transaction: Transaction,
  seen: (rows: number) => Promise<void> | void = () => {},
): Promise<boolean> {
  const isNew = await checkpoints.advance(
    (sql, values) => client.query(sql, [...values]),
    transaction,
  );
  if (!isNew) return false;
  let rows = 0;
  let [ids, pads]: [unknown[], unknown[]] = [[], []];
  const write = async (): Promise<void> => {
    rows += ids.length;
    await seen(rows);
    await client.query({
      name: 'bulk',
      text: 'insert into t select * from unnest($1::int[], $2::text[])',
      values: [ids, pads],
    });
    [ids, pads] = [[], []];
  };
  for await (const change of transaction.changes) {
    if (change.op !== 'insert') throw new Error('Only inserts are mirrored.');
    ids.push(change.record['id']);
    pads.push(change.record['pad']);
    if (ids.length === ROWS_A_STATEMENT) await write();
  }
  await write();
  await client.query('insert into ledger values ($1, $2, $3)', [
    transaction.slotName,
    formatLsn(transaction.commitLsn),
    rows,
  ]);
  return true;
}
