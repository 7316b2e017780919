import {
  type Change,
  Checkpoint,
  CheckpointTable,
  formatLsn,
  OnSnapshot,
  OnTransaction,
  ReplicantSink,
  type SnapshotContext,
  type SnapshotRow,
  type Transaction,
} from 'nestjs-replicant';
import type { PoolClient } from 'pg';
import { isOfShop, type Shop } from '../schema.js';
import {
  deleteRow,
  emptyTable,
  insertRow,
  insertRows,
  noteCopied,
  truncateTable,
  updateRow,
} from './statements.js';
import { TargetDatabase } from './target-database.js';

/**
 * Keeps a copy of the shop. Each transaction of the source is one transaction here, together with the checkpoint. So is each page of rows
 * that existed before, together with how far the snapshot is.
 */
@ReplicantSink()
export class ShopCopy {
  @Checkpoint()
  readonly checkpoints = new CheckpointTable((sql, values) =>
    this.target.pool.query(sql, values),
  );

  constructor(private readonly target: TargetDatabase) {}

  @OnTransaction()
  async apply(tx: Transaction<Shop>): Promise<void> {
    await this.target.transaction(async (client) => {
      const isNew = await this.checkpoints.advance(
        (sql, values) => client.query(sql, values),
        tx,
      );
      if (!isNew) return; // applied before the application was killed
      let changes = 0;
      for await (const change of tx.changes) {
        await this.#write(client, change);
        changes += 1;
      }
      await client.query(
        'INSERT INTO ledger (commit_lsn, changes, committed_at) VALUES ($1, $2, $3)',
        [formatLsn(tx.commitLsn), changes, tx.commitTime],
      );
    });
  }

  /** Takes rows that exist already, all of one table. The stream may have brought some of them before, when it runs beside. */
  @OnSnapshot()
  async copy(
    rows: readonly SnapshotRow<Shop>[],
    context: SnapshotContext,
  ): Promise<void> {
    await this.target.transaction(async (client) => {
      await this.checkpoints.keepProgress(
        (sql, values) => client.query(sql, values),
        context,
      );
      const { relation, firstForTable } = context;
      if (!isOfShop(relation)) return; // the last call of all is of no table
      if (firstForTable) await client.query(emptyTable(relation));
      const records = rows.map(({ record }) => record);
      await client.query(noteCopied(relation, records));
      const whole = rows.filter(({ unchanged }) => unchanged.length === 0);
      await client.query(
        insertRows(
          relation,
          whole.map(({ record }) => record),
        ),
      );
      // The stream has brought the row, without the large columns that are here.
      for (const { record, unchanged } of rows) {
        if (unchanged.length > 0)
          await client.query(updateRow(relation, record, record));
      }
    });
  }

  async #write(client: PoolClient, change: Change<Shop>): Promise<void> {
    switch (change.op) {
      case 'insert':
        await client.query(insertRow(change.relation, change.record));
        return;
      case 'update': {
        // Without an old key the key is as it was. Unchanged TOASTed columns are not in the record, and stay.
        const key = change.old?.record ?? change.record;
        const update = updateRow(change.relation, change.record, key);
        const { rowCount } = await client.query(update);
        // A snapshot beside the stream has not come to this row yet; it will fill in what is not in the record.
        if (rowCount === 0)
          await client.query(insertRow(change.relation, change.record));
        return;
      }
      case 'delete':
        await client.query(deleteRow(change.relation, change.old.record));
        return;
      case 'truncate':
        await client.query(truncateTable(change.relation));
    }
  }
}
