import { drizzle } from 'drizzle-orm/node-postgres';
import { Kysely, PostgresDialect } from 'kysely';
import type { CheckpointTable, Transaction } from 'nestjs-replicant';
import { Pool } from 'pg';
import { DataSource } from 'typeorm';
import * as onDrizzle from './wiring/drizzle.js';
import * as onKysely from './wiring/kysely.js';
import { Order } from './wiring/order.entity.js';
import * as inBatchesOnPg from './wiring/pg-batch.js';
import * as onPg from './wiring/pg.js';
import * as inBatchesOnPrisma from './wiring/prisma-batch.js';
import * as onPrisma from './wiring/prisma.js';
import { PrismaService } from './wiring/prisma.service.js';
import type { Shop } from './wiring/shop.js';
import * as inBatchesOnTypeorm from './wiring/typeorm-batch.js';
import * as onTypeorm from './wiring/typeorm.js';

/** The server that positions of made transactions belong to. */
export const SOURCE = { systemIdentifier: '7000000000000000001', timeline: 1 };
export const CONTEXT = { pipeline: 'orders', slotName: 'orders', ...SOURCE };

/** A sink that takes a transaction, or a batch of them. */
export interface WiredSink<Work> {
  readonly checkpoints: CheckpointTable;
  apply(work: Work): Promise<void>;
}

/** Another instance of the sink over the same client, as another process would have it. */
type Create<Work> = () => WiredSink<Work>;

/** A library of databases, and the sinks that the documentation wires to it. */
export interface Wiring {
  readonly create: Create<Transaction<Shop>>;
  readonly close: () => Promise<unknown>;
}

/** One whose sink in batches is shown too. */
export interface BatchWiring extends Wiring {
  readonly createBatch: Create<readonly Transaction<Shop>[]>;
}

/** Those that docs/delivery.md shows. */
export const BATCH_WIRINGS: Record<
  string,
  (url: string) => Promise<BatchWiring>
> = {
  async pg(url) {
    const pool = new Pool({ connectionString: url });
    return {
      create: () => new onPg.OrderProjection(pool),
      createBatch: () => new inBatchesOnPg.OrderCopy(pool),
      close: () => pool.end(),
    };
  },
  async typeorm(url) {
    const db = new DataSource({ type: 'postgres', url, entities: [Order] });
    await db.initialize();
    return {
      create: () => new onTypeorm.OrderProjection(db),
      createBatch: () => new inBatchesOnTypeorm.OrderCopy(db),
      close: () => db.destroy(),
    };
  },
  async prisma(url) {
    const prisma = new PrismaService(url);
    return {
      create: () => new onPrisma.OrderProjection(prisma),
      createBatch: () => new inBatchesOnPrisma.OrderCopy(prisma),
      close: () => prisma.$disconnect(),
    };
  },
};

/** Those that docs/checkpoints.md shows. */
export const WIRINGS: Record<string, (url: string) => Promise<Wiring>> = {
  ...BATCH_WIRINGS,
  async drizzle(url) {
    const pool = new Pool({ connectionString: url });
    const db = drizzle(pool);
    return {
      create: () => new onDrizzle.OrderProjection(db),
      close: () => pool.end(),
    };
  },
  async kysely(url) {
    const pool = new Pool({ connectionString: url });
    const db = new Kysely<{ orders: Shop['public.orders'] }>({
      dialect: new PostgresDialect({ pool }),
    });
    return {
      create: () => new onKysely.OrderProjection(db),
      close: () => db.destroy(),
    };
  },
};
