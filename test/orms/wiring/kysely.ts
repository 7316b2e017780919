import { CompiledQuery, Kysely } from 'kysely';
import {
  Checkpoint,
  CheckpointTable,
  OnTransaction,
  ReplicantSink,
  type Transaction,
} from 'nestjs-replicant';
import type { Shop } from './shop.js';

interface Database {
  orders: Shop['public.orders'];
}

@ReplicantSink()
export class OrderProjection {
  @Checkpoint()
  readonly checkpoints = new CheckpointTable((sql, values) =>
    this.db.executeQuery(CompiledQuery.raw(sql, values)),
  );

  constructor(private readonly db: Kysely<Database>) {}

  @OnTransaction()
  async apply(tx: Transaction<Shop>): Promise<void> {
    await this.db.transaction().execute(async (db) => {
      const isNew = await this.checkpoints.advance(
        (sql, values) => db.executeQuery(CompiledQuery.raw(sql, values)),
        tx,
      );
      if (!isNew) return;
      for await (const change of tx.changes) {
        if (change.op !== 'insert') continue;
        const { id, total } = change.record;
        await db
          .insertInto('orders')
          .values({ id, total })
          .onConflict((row) => row.column('id').doUpdateSet({ total }))
          .execute();
      }
    });
  }
}
