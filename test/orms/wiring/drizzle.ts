import { sql, type SQL } from 'drizzle-orm';
import { NodePgDatabase } from 'drizzle-orm/node-postgres';
import {
  Checkpoint,
  CheckpointTable,
  OnTransaction,
  ReplicantSink,
  type Transaction,
} from 'nestjs-replicant';
import { orders } from './orders.table.js';
import type { Shop } from './shop.js';

/** Drizzle takes no text with $1, $2 …: this makes its own form of a statement from it. */
function bound(text: string, values: unknown[]): SQL {
  const parts = text.split(/\$(\d+)/);
  return sql.join(
    parts.map((part, index) =>
      index % 2 === 0 ? sql.raw(part) : sql.param(values[Number(part) - 1]),
    ),
  );
}

@ReplicantSink()
export class OrderProjection {
  @Checkpoint()
  readonly checkpoints = new CheckpointTable((text, values) =>
    this.db.execute(bound(text, values)),
  );

  constructor(private readonly db: NodePgDatabase) {}

  @OnTransaction()
  async apply(tx: Transaction<Shop>): Promise<void> {
    await this.db.transaction(async (db) => {
      const isNew = await this.checkpoints.advance(
        (text, values) => db.execute(bound(text, values)),
        tx,
      );
      if (!isNew) return;
      for await (const change of tx.changes) {
        if (change.op !== 'insert') continue;
        const { id, total } = change.record;
        await db
          .insert(orders)
          .values({ id, total })
          .onConflictDoUpdate({ target: orders.id, set: { total } });
      }
    });
  }
}
