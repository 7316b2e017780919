import {
  Checkpoint,
  CheckpointTable,
  OnBatch,
  ReplicantSink,
  type Transaction,
} from 'nestjs-replicant';
import { Pool } from 'pg';
import { portions } from './portions.js';
import type { Shop } from './shop.js';

@ReplicantSink()
export class OrderCopy {
  @Checkpoint()
  readonly checkpoints = new CheckpointTable((sql, values) =>
    this.pool.query(sql, values),
  );

  constructor(private readonly pool: Pool) {}

  @OnBatch()
  async apply(batch: readonly Transaction<Shop>[]): Promise<void> {
    const client = await this.pool.connect();
    let committed = false;
    try {
      await client.query('BEGIN');
      const fresh = await this.checkpoints.advance(
        (sql, values) => client.query(sql, values),
        batch,
      );
      for await (const { truncated, gone, rows } of portions(fresh)) {
        if (truncated) await client.query('DELETE FROM orders');
        await client.query('DELETE FROM orders WHERE id = ANY ($1)', [gone]);
        await client.query(
          `INSERT INTO orders (id, total) SELECT * FROM unnest($1::int[], $2::int[])
           ON CONFLICT (id) DO UPDATE SET total = excluded.total`,
          [rows.map(({ id }) => id), rows.map(({ total }) => total)],
        );
      }
      await client.query('COMMIT');
      committed = true;
    } finally {
      client.release(!committed); // closes the connection of a failed transaction, which rolls it back
    }
  }
}
