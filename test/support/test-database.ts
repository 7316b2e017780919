import { Client, Pool, type QueryResult, type QueryResultRow } from 'pg';
import { dropSlots, type Queryable } from './logical-slot.js';

/** Where a server listens, and its superuser. */
export interface ServerConnection {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
}

/** What a database needs of its server. */
export interface DatabaseServer extends Queryable {
  readonly connection: ServerConnection;
  readonly running: boolean;
}

/** Where a database is, as the `pg` module takes it. */
export interface DatabaseConnection extends ServerConnection {
  readonly database: string;
}

/** One database of a server. It survives restarts of the server. */
export class TestDatabase {
  readonly #pool: Pool;
  readonly #clients: Client[] = [];
  #closed = false;

  constructor(
    readonly server: DatabaseServer,
    readonly name: string,
  ) {
    this.#pool = new Pool({ ...this.connection, max: 4 });
    this.#pool.on('error', () => {});
  }

  get connection(): DatabaseConnection {
    return { ...this.server.connection, database: this.name };
  }

  get url(): string {
    const { host, port, user, password } = this.connection;
    return `postgresql://${user}:${password}@${host}:${port}/${this.name}`;
  }

  /** Runs one statement, or several when there are no values; then the rows of the last. */
  async query<R extends QueryResultRow = QueryResultRow>(
    sql: string,
    values: readonly unknown[] = [],
  ): Promise<R[]> {
    const results: QueryResult<R> | QueryResult<R>[] =
      values.length === 0
        ? await this.#pool.query<R>(sql)
        : await this.#pool.query<R>(sql, [...values]);
    const last = [results].flat().at(-1);
    return last?.rows ?? [];
  }

  /** A connection of its own, for transactions that stay open. Closed with the database. */
  async connect(): Promise<Client> {
    const client = new Client(this.connection);
    client.on('error', () => {});
    await client.connect();
    this.#clients.push(client);
    return client;
  }

  /** Drops the database with its slots. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#rollbackPrepared();
    await Promise.allSettled(this.#clients.map((client) => client.end()));
    await this.#pool.end();
    if (!this.server.running) return;
    await dropSlots(this.server, this.name);
    await this.server.query(
      `DROP DATABASE IF EXISTS "${this.name}" WITH (FORCE)`,
    );
  }

  async #rollbackPrepared(): Promise<void> {
    if (!this.server.running) return;
    const prepared = await this.query<{ statement: string }>(
      `SELECT format('ROLLBACK PREPARED %L', gid) AS statement FROM pg_prepared_xacts WHERE database = current_database()`,
    );
    for (const { statement } of prepared) await this.query(statement);
  }
}
