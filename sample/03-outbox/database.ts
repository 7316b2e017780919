import { type OnModuleDestroy } from '@nestjs/common';
import { Pool, type PoolClient } from 'pg';

/** The database of a service. */
export class Database implements OnModuleDestroy {
  readonly #pool: Pool;

  constructor(connectionString: string) {
    // Without these listeners a lost connection ends the process.
    this.#pool = new Pool({ connectionString })
      .on('error', () => {})
      .on('connect', (client) => client.on('error', () => {}));
  }

  /** Runs work in one transaction: all of it or nothing. */
  async transaction<T>(work: (client: PoolClient) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect();
    let committed = false;
    try {
      await client.query('BEGIN');
      const result = await work(client);
      await client.query('COMMIT');
      committed = true;
      return result;
    } finally {
      client.release(!committed); // closing a failed connection rolls back
    }
  }

  async onModuleDestroy(): Promise<void> {
    await this.#pool.end();
  }
}
