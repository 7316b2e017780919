import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { CheckpointTable, Pipeline, type Transaction } from 'nestjs-replicant';
import { Client, Pool } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { codeBlocks } from '../tools/markdown.mjs';
import { readSlot } from './support/logical-slot.js';
import { useServer } from './support/suite.js';
import { waitFor } from './support/wait-for.js';
import { changesOf } from './support/changes-of.js';

const guide = readFileSync('docs/operations.md', 'utf8');

describe('the guide to operations', () => {
  const suite = useServer();
  const clients: Client[] = [];
  const unused = new Set(codeBlocks(guide, 'sql').map(({ code }) => code));
  let shop: Client;
  let copy: Client;

  async function connect(
    database: string,
    role?: 'replicant_source' | 'replicant_sink',
    replication?: 'database',
  ): Promise<Client> {
    const client = new Client({
      ...suite.server.connection,
      ...(role === undefined ? {} : { user: role, password: 'change me' }),
      database,
      ...(replication === undefined ? {} : { replication }),
    });
    client.on('error', () => {});
    await client.connect();
    clients.push(client);
    return client;
  }

  /** Runs the block of the guide that holds this phrase, as it stands. */
  async function run(on: Client, phrase: string): Promise<unknown[]> {
    const code = codeBlocks(guide, 'sql')
      .map((block) => block.code)
      .find((text) => text.includes(phrase));
    if (code === undefined) throw new Error(`No block says ${phrase}.`);
    unused.delete(code);
    let rows: unknown[] = [];
    for (const statement of code.split(/;\n/)) {
      if (statement !== '') ({ rows } = await on.query(statement));
    }
    return rows;
  }

  async function admitBy(lines: string): Promise<void> {
    const file = path.join(suite.server.dataFolder, 'pg_hba.conf');
    const { user } = suite.server.connection;
    writeFileSync(
      file,
      `host all ${user} 127.0.0.1/32 scram-sha-256
host all replicant_sink 127.0.0.1/32 scram-sha-256
${lines}\n`,
    );
    await suite.server.query('SELECT pg_reload_conf()');
  }

  beforeAll(async () => {
    await suite.server.query('CREATE DATABASE shop');
    await suite.server.query('CREATE DATABASE copy');
    shop = await connect('shop');
    copy = await connect('copy');
    await shop.query(`
      CREATE TABLE orders (id int PRIMARY KEY, total numeric);
      CREATE TABLE customers (id int PRIMARY KEY);
      CREATE TABLE keyless (id int);`);
  });

  afterAll(async () => {
    await Promise.allSettled(clients.map((client) => client.end()));
  });

  it('configures the server, roles and publication', async () => {
    await run(shop, 'ALTER SYSTEM');
    await suite.server.query('SELECT pg_reload_conf()');
    await waitFor(async () => {
      const { rows } = await shop.query<{ limit: string }>(
        `SELECT current_setting('max_slot_wal_keep_size') AS limit`,
      );
      return rows[0]?.limit === '20GB';
    });
    await run(shop, 'CREATE ROLE replicant_source');
    await run(copy, 'CREATE ROLE replicant_sink');
    await run(shop, 'CREATE PUBLICATION');
    expect(await run(shop, 'no_identity')).toEqual([
      { no_identity: 'keyless' },
    ]);
  });

  it('says which line of pg_hba.conf admits a pipeline', async () => {
    const replicate = () =>
      connect('shop', 'replicant_source', 'database').then(
        () => 'admitted',
        (error: unknown) => String(error),
      );
    await admitBy('host replication replicant_source 127.0.0.1/32 trust');
    await expect.poll(replicate).toMatch('no pg_hba.conf entry');
    await admitBy('host shop replicant_source 127.0.0.1/32 scram-sha-256');
    await expect.poll(replicate).toBe('admitted');
  });

  it('grants all that a pipeline needs, and shows how to watch and remove it', async () => {
    const { host, port } = suite.server.connection;
    const source = {
      host,
      port,
      database: 'shop',
      user: 'replicant_source',
      password: 'change me',
    };
    const target = new Pool({
      ...source,
      database: 'copy',
      user: 'replicant_sink',
      max: 1,
    });
    const keeper = new CheckpointTable((sql, values) =>
      target.query(sql, values),
    );
    const applied: number[] = [];
    const pipeline = new Pipeline('default', {
      connection: source,
      slotName: 'orders',
      publication: 'orders_pub',
      goForwardOnly: true,
    });
    keeper.bindTo({ pipeline: 'default', slotName: 'orders' });
    pipeline.attach({
      name: 'OrderCopy',
      checkpoint: { kind: 'keeper', keeper },
      transaction: async (tx: Transaction) => {
        const isNew = await keeper.advance(
          (sql, values) => target.query(sql, values),
          tx,
        );
        if (isNew) applied.push(changesOf(tx).length);
      },
    });
    try {
      pipeline.start();
      await pipeline.whenStreaming();
      await shop.query('INSERT INTO orders VALUES (1, 1.10), (2, 2.20)');
      await waitFor(() => applied.length > 0);
      expect(applied).toEqual([2]);

      expect(await run(shop, 'left_until_lost')).toMatchObject([
        { slot_name: 'orders', active: true, wal_status: 'reserved' },
      ]);
      expect(await run(shop, 'pg_stat_replication')).toContainEqual(
        expect.objectContaining({ state: 'streaming' }),
      );
      const writer = await connect('shop');
      await writer.query('BEGIN; INSERT INTO orders VALUES (3, 3.30)');
      expect(await run(shop, 'pg_prepared_xacts')).toHaveLength(1);
      await writer.query('ROLLBACK');

      await pipeline.stop();
      await run(shop, 'pg_drop_replication_slot');
      expect(await readSlot(suite.server, 'orders')).toBeNull();
      await run(copy, 'DELETE FROM replicant_checkpoints');
      expect(await keeper.load()).toBeNull();
    } finally {
      await pipeline.stop();
      await target.end();
    }
  });

  it('has no statement that is not run here', () => {
    expect([...unused]).toEqual([]);
  });
});
