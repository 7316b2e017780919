import type { Client } from 'pg';
import { dropSlots } from '../../support/logical-slot.js';
import type { PostgresServer } from '../../support/postgres-server.js';
import type { TestDatabase } from '../../support/test-database.js';
import { waitFor } from '../../support/wait-for.js';
import type { SnapshotLoad } from './snapshot-loads.js';

const FAREWELL_TIMEOUT_MS = 30_000;

/** A database with the table `orders`, full of rows, and the publication `p`. */
export class PopulatedSource {
  private constructor(
    readonly database: TestDatabase,
    private readonly server: PostgresServer,
    private readonly session: Client,
  ) {}

  static async create(
    server: PostgresServer,
    { columns, values, rows }: SnapshotLoad,
  ): Promise<PopulatedSource> {
    const database = await server.createDatabase('bench');
    const session = await database.connect();
    await session.query(
      `CREATE TABLE orders (${columns}); CREATE PUBLICATION p FOR TABLE orders;
       INSERT INTO orders SELECT ${values} FROM generate_series(1::int8, ${rows}) AS id`,
    );
    await session.query('VACUUM ANALYZE orders');
    await session.query('CHECKPOINT');
    // Readers find it as warm as it gets.
    await session.query('SELECT sum(length(o::text)) FROM orders o');
    return new PopulatedSource(database, server, session);
  }

  /** Waits for the sessions of a reader to end, and drops what it has left. */
  async tidy(): Promise<void> {
    await waitFor(() => this.#isAlone(), {
      timeout: FAREWELL_TIMEOUT_MS,
      message: 'the sessions of a reader to end',
    });
    await dropSlots(this.server, this.database.name);
  }

  /** Ends whoever still reads, and drops the database. */
  async close(): Promise<void> {
    await dropSlots(this.server, this.database.name);
    await this.database.close();
  }

  async #isAlone(): Promise<boolean> {
    const { rows } = await this.session.query(
      `SELECT FROM pg_stat_activity
        WHERE backend_type IN ('client backend', 'walsender') AND pid <> pg_backend_pid()`,
    );
    return rows.length === 0;
  }
}
