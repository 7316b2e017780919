import {
  Checkpoint,
  CheckpointTable,
  OnTransaction,
  ReplicantSink,
  type Transaction,
} from 'nestjs-replicant';
import { PrismaService } from './prisma.service.js';
import type { Shop } from './shop.js';

@ReplicantSink()
export class OrderProjection {
  @Checkpoint()
  readonly checkpoints = new CheckpointTable((sql, values) =>
    this.prisma.$queryRawUnsafe(sql, ...values),
  );

  constructor(private readonly prisma: PrismaService) {}

  @OnTransaction()
  async apply(tx: Transaction<Shop>): Promise<void> {
    await this.prisma.$transaction(
      async (db) => {
        const isNew = await this.checkpoints.advance(
          (sql, values) => db.$queryRawUnsafe(sql, ...values),
          tx,
        );
        if (!isNew) return;
        for await (const change of tx.changes) {
          if (change.op !== 'insert') continue;
          const { id, total } = change.record;
          await db.order.upsert({
            where: { id },
            create: { id, total },
            update: { total },
          });
        }
      },
      { timeout: 60_000 },
    );
  }
}
