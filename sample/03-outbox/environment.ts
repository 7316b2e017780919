import { randomBytes } from 'node:crypto';
import { PostgresServer } from '../../test/support/postgres-server.js';
import type { TestDatabase } from '../../test/support/test-database.js';
import { BILLING_SCHEMA, SHOP_SCHEMA } from './schema.js';

/** A PostgreSQL server with the databases of two services. */
export class Environment {
  private constructor(
    readonly shop: TestDatabase,
    readonly billing: TestDatabase,
    /** Connection string of a role that may replicate, and owns its checkpoint and nothing else. */
    readonly relayUrl: string,
    /** Connection string of a role that may use the tables of billing. */
    readonly billingUrl: string,
    private readonly server: PostgresServer,
  ) {}

  static async start(): Promise<Environment> {
    const server = await PostgresServer.start();
    try {
      const shop = await server.createDatabase('shop');
      const billing = await server.createDatabase('billing');
      const relayUrl = await createRole(shop, 'relay', 'LOGIN REPLICATION');
      const billingUrl = await createRole(billing, 'billing', 'LOGIN');
      await shop.query(SHOP_SCHEMA);
      await billing.query(BILLING_SCHEMA);
      return new Environment(shop, billing, relayUrl, billingUrl, server);
    } catch (error) {
      await server.remove();
      throw error;
    }
  }

  /** Leaves no process and no file. */
  async remove(): Promise<void> {
    await Promise.all([this.shop.close(), this.billing.close()]);
    await this.server.remove();
  }
}

/** @returns how it connects */
async function createRole(
  database: TestDatabase,
  name: 'relay' | 'billing',
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
