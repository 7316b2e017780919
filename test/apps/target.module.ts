import { Injectable, Module, type OnModuleDestroy } from '@nestjs/common';
import { Pool, type PoolClient } from 'pg';
import { say, setting } from './settings.js';

/** The database of the sink. Its pool ends with its module, which is not the one of the sink. */
@Injectable()
export class Target implements OnModuleDestroy {
  readonly pool = new Pool({
    connectionString: setting('TARGET_URL'),
    max: 2,
    idleTimeoutMillis: Number(process.env['IDLE_TIMEOUT'] ?? 10_000),
  });

  constructor() {
    this.pool.on('error', () => {});
    this.pool.on('connect', (client) => client.on('error', () => {}));
    this.pool.on('remove', () => {
      if (this.pool.totalCount === 0) say('target idle');
    });
  }

  async transaction(
    work: (client: PoolClient) => Promise<void>,
  ): Promise<void> {
    const client = await this.pool.connect();
    try {
      await client.query('begin');
      await work(client);
      await client.query('commit');
      client.release();
    } catch (error) {
      client.release(true);
      throw error;
    }
  }

  async onModuleDestroy(): Promise<void> {
    await this.pool.end();
  }
}

@Module({ providers: [Target], exports: [Target] })
export class TargetModule {}
