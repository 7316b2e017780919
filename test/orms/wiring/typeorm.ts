import {
  Checkpoint,
  CheckpointTable,
  OnTransaction,
  ReplicantSink,
  type Transaction,
} from 'nestjs-replicant';
import { DataSource } from 'typeorm';
import { Order } from './order.entity.js';
import type { Shop } from './shop.js';

@ReplicantSink()
export class OrderProjection {
  @Checkpoint()
  readonly checkpoints = new CheckpointTable((sql, values) =>
    this.db.query(sql, values),
  );

  constructor(private readonly db: DataSource) {}

  @OnTransaction()
  async apply(tx: Transaction<Shop>): Promise<void> {
    await this.db.transaction(async (em) => {
      const isNew = await this.checkpoints.advance(
        (sql, values) => em.query(sql, values),
        tx,
      );
      if (!isNew) return;
      for await (const change of tx.changes) {
        if (change.op !== 'insert') continue;
        await em.upsert(Order, change.record, ['id']);
      }
    });
  }
}
