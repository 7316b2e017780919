import {
  Checkpoint,
  CheckpointTable,
  OnTransaction,
  ReplicantSink,
  type Transaction,
} from 'nestjs-replicant';
import { Pool } from 'pg';
import type { Shop } from './shop.js';

@ReplicantSink()
export class OrderProjection {
  @Checkpoint()
  readonly checkpoints = new CheckpointTable((sql, values) =>
    this.pool.query(sql, values),
  );

  constructor(private readonly pool: Pool) {}

  @OnTransaction()
  async apply(tx: Transaction<Shop>): Promise<void> {
    const client = await this.pool.connect();
    let committed = false;
    try {
      await client.query('BEGIN');
      if (
        await this.checkpoints.advance(
          (sql, values) => client.query(sql, values),
          tx,
        )
      ) {
        for await (const change of tx.changes) {
          if (change.op !== 'insert') continue;
          await client.query(
            'INSERT INTO orders (id, total) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET total = excluded.total',
            [change.record.id, change.record.total],
          );
        }
      }
      await client.query('COMMIT');
      committed = true;
    } finally {
      client.release(!committed); // closes the connection of a failed transaction, which rolls it back
    }
  }
}
