import { randomBytes } from 'node:crypto';
import { PostgresServer } from '../../test/support/postgres-server.js';
import type { TestDatabase } from '../../test/support/test-database.js';
import { SOURCE_SCHEMA, TARGET_SCHEMA } from './schema.js';
import { fillShop } from './writer/existing-rows.js';

/** A shop, and the database that gets the copy. */
export interface Pair {
  /** The shop, as the superuser of its server sees it. */
  readonly source: TestDatabase;
  readonly target: TestDatabase;
  /** Connection string of a role that may replicate and read the published tables, and nothing else. */
  readonly sourceUrl: string;
  /** Connection string of a role that owns the copy, and nothing else. */
  readonly targetUrl: string;
  readonly slotName: string;
}

/** Two PostgreSQL servers: one has the shops, and the other one gets the copies. */
export class Environment {
  readonly #databases: TestDatabase[] = [];

  private constructor(
    private readonly sources: Server,
    private readonly targets: Server,
  ) {}

  static async start(): Promise<Environment> {
    const servers: PostgresServer[] = [];
    const start = async (
      role: Server['role'],
      attributes: 'LOGIN' | 'LOGIN REPLICATION',
    ): Promise<Server> => {
      const server = await PostgresServer.start();
      servers.push(server);
      const password = randomBytes(12).toString('hex');
      await server.query(
        `CREATE ROLE ${role} ${attributes} PASSWORD '${password}'`,
      );
      return { server, role, password };
    };
    try {
      return new Environment(
        await start('replicator', 'LOGIN REPLICATION'),
        await start('copyist', 'LOGIN'),
      );
    } catch (error) {
      await Promise.all(servers.map((server) => server.remove()));
      throw error;
    }
  }

  /** Opens a shop with this many rows, and a database for its copy. */
  async createPair(rows: number): Promise<Pair> {
    const source = await this.#createDatabase(this.sources);
    const target = await this.#createDatabase(this.targets);
    await source.query(
      `${SOURCE_SCHEMA} GRANT SELECT ON customers, orders, order_lines TO replicator;`,
    );
    if (rows > 0) await source.query(fillShop(rows));
    await target.query(
      `GRANT CREATE ON SCHEMA public TO copyist; SET ROLE copyist; ${TARGET_SCHEMA} RESET ROLE`,
    );
    return {
      source,
      target,
      sourceUrl: urlOf(source, this.sources),
      targetUrl: urlOf(target, this.targets),
      slotName: `copy_of_${source.name}`,
    };
  }

  /** Leaves no process and no file. */
  async remove(): Promise<void> {
    await Promise.all(this.#databases.map((database) => database.close()));
    await Promise.all(
      [this.sources, this.targets].map(({ server }) => server.remove()),
    );
  }

  async #createDatabase({ server }: Server): Promise<TestDatabase> {
    const database = await server.createDatabase('shop');
    this.#databases.push(database);
    return database;
  }
}

/** A server, and the role by which the application uses it. */
interface Server {
  readonly server: PostgresServer;
  readonly role: 'replicator' | 'copyist';
  readonly password: string;
}

function urlOf(database: TestDatabase, { role, password }: Server): string {
  const url = new URL(database.url);
  url.username = role;
  url.password = password;
  return url.href;
}
