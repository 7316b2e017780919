import {
  Checkpoint,
  CheckpointTable,
  OnBatch,
  ReplicantSink,
  type Transaction,
} from 'nestjs-replicant';
import { DataSource } from 'typeorm';
import { Order } from './order.entity.js';
import { portions } from './portions.js';
import type { Shop } from './shop.js';

@ReplicantSink()
export class OrderCopy {
  @Checkpoint()
  readonly checkpoints = new CheckpointTable((sql, values) =>
    this.db.query(sql, values),
  );

  constructor(private readonly db: DataSource) {}

  @OnBatch()
  async apply(batch: readonly Transaction<Shop>[]): Promise<void> {
    await this.db.transaction(async (em) => {
      const fresh = await this.checkpoints.advance(
        (sql, values) => em.query(sql, values),
        batch,
      );
      for await (const { truncated, gone, rows } of portions(fresh)) {
        if (truncated) await em.deleteAll(Order);
        if (gone.length > 0) await em.delete(Order, gone);
        await em.upsert(Order, rows, ['id']);
      }
    });
  }
}
