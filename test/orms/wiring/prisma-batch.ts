import {
  Checkpoint,
  CheckpointTable,
  OnBatch,
  ReplicantSink,
  type Transaction,
} from 'nestjs-replicant';
import { portions } from './portions.js';
import { PrismaService } from './prisma.service.js';
import type { Shop } from './shop.js';

@ReplicantSink()
export class OrderCopy {
  @Checkpoint()
  readonly checkpoints = new CheckpointTable((sql, values) =>
    this.prisma.$queryRawUnsafe(sql, ...values),
  );

  constructor(private readonly prisma: PrismaService) {}

  @OnBatch()
  async apply(batch: readonly Transaction<Shop>[]): Promise<void> {
    await this.prisma.$transaction(
      async (db) => {
        const fresh = await this.checkpoints.advance(
          (sql, values) => db.$queryRawUnsafe(sql, ...values),
          batch,
        );
        for await (const { truncated, gone, rows } of portions(fresh)) {
          if (truncated) await db.order.deleteMany();
          // Prisma has no upsert of many rows: what is written anew is removed first.
          const touched = [...gone, ...rows.map(({ id }) => id)];
          await db.order.deleteMany({ where: { id: { in: touched } } });
          await db.order.createMany({ data: rows });
        }
      },
      { timeout: 60_000 },
    );
  }
}
