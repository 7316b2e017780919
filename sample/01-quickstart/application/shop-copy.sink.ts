import {
  type Change,
  Checkpoint,
  CheckpointTable,
  formatLsn,
  OnTransaction,
  ReplicantSink,
  type Transaction,
} from 'nestjs-replicant';
import type { PoolClient, QueryResult } from 'pg';
import type { Shop } from '../schema.js';
import {
  deleteRow,
  insertRow,
  truncateTable,
  updateRow,
} from './statements.js';
import { TargetDatabase } from './target-database.js';

/** Keeps a copy of the shop. Each transaction of the source is one transaction here, together with the checkpoint. */
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

  async #write(client: PoolClient, change: Change<Shop>): Promise<void> {
    switch (change.op) {
      case 'insert':
        await client.query(insertRow(change.relation, change.record));
        return;
      case 'update': {
        // Without an old key the key is as it was. Unchanged TOASTed columns are not in the record, and stay.
        const key = change.old?.record ?? change.record;
        const update = updateRow(change.relation, change.record, key);
        expectOneRow(await client.query(update));
        return;
      }
      case 'delete': {
        const remove = deleteRow(change.relation, change.old.record);
        expectOneRow(await client.query(remove));
        return;
      }
      case 'truncate':
        await client.query(truncateTable(change.relation));
    }
  }
}

/** The copy is exact, so a row that is not there means that somebody else writes to it: better to halt than to go on. */
function expectOneRow({ rowCount }: QueryResult): void {
  if (rowCount !== 1) throw new Error('The copy lacks a row of the source.');
}
