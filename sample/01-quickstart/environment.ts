import { randomBytes } from 'node:crypto';
import { PostgresServer } from '../../test/support/postgres-server.js';
import type { TestDatabase } from '../../test/support/test-database.js';
import { SOURCE_SCHEMA, TARGET_SCHEMA } from './schema.js';

/** Two PostgreSQL servers: the shop, and the one that gets the copy. */
export class Environment {
  private constructor(
    /** The shop, as its superuser sees it. */
    readonly source: TestDatabase,
    readonly target: TestDatabase,
    /** Connection string of a role that may replicate and read the published tables, and nothing else. */
    readonly sourceUrl: string,
    /** Connection string of a role that owns the copy, and nothing else. */
    readonly targetUrl: string,
    private readonly servers: readonly PostgresServer[],
  ) {}

  static async start(): Promise<Environment> {
    const servers: PostgresServer[] = [];
    try {
      const database = async () => {
        const server = await PostgresServer.start();
        servers.push(server);
        return server.createDatabase('shop');
      };
      const source = await database();
      const target = await database();
      const sourceUrl = await prepareSource(source);
      const targetUrl = await prepareTarget(target);
      return new Environment(source, target, sourceUrl, targetUrl, servers);
    } catch (error) {
      await Promise.all(servers.map((server) => server.remove()));
      throw error;
    }
  }

  /** Leaves no process and no file. */
  async remove(): Promise<void> {
    await Promise.all([this.source.close(), this.target.close()]);
    await Promise.all(this.servers.map((server) => server.remove()));
  }
}

async function prepareSource(source: TestDatabase): Promise<string> {
  await source.query(SOURCE_SCHEMA);
  return createRole(source, 'replicator', 'LOGIN REPLICATION');
}

async function prepareTarget(target: TestDatabase): Promise<string> {
  const url = await createRole(target, 'copyist', 'LOGIN');
  await target.query(
    `GRANT CREATE ON SCHEMA public TO copyist; SET ROLE copyist; ${TARGET_SCHEMA} RESET ROLE`,
  );
  return url;
}

async function createRole(
  database: TestDatabase,
  name: 'replicator' | 'copyist',
  attributes: 'LOGIN' | 'LOGIN REPLICATION',
): Promise<string> {
  const password = randomBytes(12).toString('hex');
  await database.query(
    `CREATE ROLE ${name} ${attributes} PASSWORD '${password}'`,
  );
  const url = new URL(database.url);
  url.username = name;
  url.password = password;
  return url.href;
}
