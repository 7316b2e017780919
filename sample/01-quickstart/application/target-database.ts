import { type OnModuleDestroy } from '@nestjs/common';
import { Pool, type PoolClient } from 'pg';

/** The database that the copy is written to. */
export class TargetDatabase implements OnModuleDestroy {
  readonly pool: Pool;

  constructor(connectionString: string) {
    this.pool = new Pool({ connectionString, max: 3 });
    // A connection that breaks is replaced at the next use, and a query that was under way rejects by itself. Without
    // these listeners the loss would end the process.
    this.pool.on('error', () => {});
    this.pool.on('connect', (client) => client.on('error', () => {}));
  }

  /** Runs work in one transaction: all of it or nothing. */
  async transaction(
    work: (client: PoolClient) => Promise<void>,
  ): Promise<void> {
    const client = await this.pool.connect();
    try {
      await client.query('BEGIN');
      await work(client);
      await client.query('COMMIT');
      client.release();
    } catch (error) {
      // Closing the connection rolls back, in whatever state it is.
      client.release(true);
      throw error;
    }
  }

  async onModuleDestroy(): Promise<void> {
    await this.pool.end();
  }
}
