import type { ClientBase } from 'pg';
import type { SnapshotContext } from '../../../lib/index.js';
import type { AnySnapshotRow } from '../../../lib/engine/model/snapshot.js';
import { setting } from '../../apps/settings.js';
import { putRows } from '../../support/put-rows.js';
import { keyText } from '../examine-copies.js';
import { CHUNK_ROWS } from '../modes.js';
import type { Points } from './points.js';

/** Writes rows by key, with a row of the ledger of copies, inside the open database transaction of `client`. */
export async function copyRows(
  client: ClientBase,
  rows: readonly AnySnapshotRow[],
  { mode, relation, firstForTable, complete }: SnapshotContext,
  points: Points,
): Promise<void> {
  if (firstForTable) {
    await client.query(`delete from ${relation}`);
    await client.query('insert into cleared(run, relation) values ($1, $2)', [
      setting('RUN'),
      relation,
    ]);
  }
  if (complete)
    await client.query('insert into completed(run) values ($1)', [
      setting('RUN'),
    ]);
  const half = Math.ceil(rows.length / 2);
  await putRows(client, rows.slice(0, half));
  if (isWhole(rows))
    await points.at(mode === 'initial' ? 'in a page' : 'in a chunk');
  await putRows(client, rows.slice(half));
  if (rows.length > 0)
    await client.query(
      `insert into copied(run, relation, copy, keys)
         select $1, $2, (select count(*) from cleared where relation = $2), $3`,
      [setting('RUN'), relation, keysOf(rows)],
    );
}

/** Whether so many rows are copied that some of them are still there when they are read again. */
export function isWhole(rows: readonly unknown[]): boolean {
  return rows.length >= CHUNK_ROWS / 2;
}

/** Of the rows that are copied, and not only filled. */
function keysOf(rows: readonly AnySnapshotRow[]): string[] {
  return rows
    .filter(({ unchanged }) => unchanged.length === 0)
    .map(({ columns, record }) => keyText(columns, record));
}
