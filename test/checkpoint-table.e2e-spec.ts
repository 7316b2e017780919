import { describe, expect, it } from 'vitest';
import { CheckpointTable } from '../lib/engine/checkpoint/checkpoint-table.js';
import {
  connectedTable,
  OTHER_SOURCE,
  pooled,
  SOURCE,
  through,
  transaction,
} from './support/checkpoint-tables.js';
import { useServer } from './support/suite.js';

const suite = useServer();

describe('the checkpoint table', () => {
  it('is created by ten instances at once, twenty times', async () => {
    const database = await suite.database();
    // Connections of their own, opened beforehand: through one pool the creators would queue.
    const clients = await Promise.all(
      Array.from({ length: 10 }, () => database.connect()),
    );
    let races = 0;
    for (let round = 0; round < 20; round++) {
      const loaded = await Promise.all(
        clients.map(async (client) => {
          const table = new CheckpointTable(async (sql, values) => {
            try {
              return await client.query(sql, values);
            } catch (error) {
              races++;
              throw error;
            }
          });
          table.bindTo({ pipeline: 'orders', slotName: 'orders' });
          return table.load();
        }),
      );
      expect(loaded).toEqual(Array.from({ length: 10 }, () => null));
      await database.query('DROP TABLE replicant_checkpoints');
    }
    // Otherwise the rounds have shown nothing.
    expect(races).toBeGreaterThan(0);
  });

  it('has all its columns from the start', async () => {
    const database = await suite.database();
    await connectedTable(database);
    const columns = await database.query(
      `SELECT attname AS name, format_type(atttypid, atttypmod) AS type, attnotnull AS required
       FROM pg_attribute WHERE attrelid = 'replicant_checkpoints'::regclass AND attnum > 0 ORDER BY attnum`,
    );
    expect(columns).toEqual([
      { name: 'slot_name', type: 'text', required: true },
      { name: 'commit_lsn', type: 'pg_lsn', required: false },
      { name: 'confirmed_lsn', type: 'pg_lsn', required: false },
      { name: 'system_identifier', type: 'text', required: true },
      { name: 'timeline', type: 'integer', required: true },
      { name: 'relations', type: 'jsonb', required: false },
      { name: 'snapshot_progress', type: 'text', required: false },
      { name: 'updated_at', type: 'timestamp with time zone', required: true },
    ]);
  });

  it.each([
    'Mixed Case',
    'order',
    `q"uo'te;--`,
    'größe',
    '$$',
    '%I',
    '$1',
    'x'.repeat(63),
  ])('may be named %s', async (name) => {
    const database = await suite.database();
    const table = await connectedTable(database, { name });
    await table.confirm(0x10n);
    expect(await table.load()).toMatchObject({ confirmedLsn: 0x10n });
    const { relationOid, quotedName } = await table.home();
    expect(
      await database.query(
        `SELECT relname AS name, $2::text::regclass::oid = oid AS same FROM pg_class WHERE oid = $1::oid`,
        [relationOid, quotedName],
      ),
    ).toEqual([{ name, same: true }]);
  });

  it('may not be named with a dot, which would be meant for a schema', () => {
    expect(
      () => new CheckpointTable(async () => [], { table: 'app.positions' }),
    ).toThrow(
      'must be the name of a table without its schema, of 1 to 63 bytes and without a dot; the search path of the connection decides where it is.',
    );
  });

  it('is created in the first schema of the search path and stays there when the path changes', async () => {
    const database = await suite.database();
    await database.query('CREATE SCHEMA "In fra"');
    const client = await database.connect();
    await client.query('SET search_path = missing, "In fra", public');
    const table = await connectedTable(database, { query: through(client) });
    expect(await table.home()).toMatchObject({
      quotedName: '"In fra".replicant_checkpoints',
    });
    await client.query(`BEGIN; SET LOCAL search_path = ''`);
    expect(
      await table.advance(through(client), transaction(0x10n, 0x20n)),
    ).toBe(true);
    await client.query('COMMIT');
    expect(
      await database.query(
        'SELECT slot_name FROM "In fra".replicant_checkpoints',
      ),
    ).toEqual([{ slot_name: 'orders' }]);
  });

  it('is used in a later schema of the search path when it exists there', async () => {
    const database = await suite.database();
    await connectedTable(database);
    await database.query('CREATE SCHEMA infra');
    const client = await database.connect();
    await client.query('SET search_path = infra, public');
    const table = await connectedTable(database, { query: through(client) });
    expect(await table.home()).toMatchObject({
      quotedName: 'public.replicant_checkpoints',
    });
  });

  it('is not created when the search path names no schema', async () => {
    const database = await suite.database();
    const client = await database.connect();
    await client.query('SET search_path = nowhere');
    await expect(
      connectedTable(database, { query: through(client) }),
    ).rejects.toThrow(/search_path .* names no schema that exists/);
  });

  it('is used by a role that may not create tables once it exists', async () => {
    const database = await suite.database();
    const role = `writer_${database.name}`;
    await database.query(`CREATE ROLE ${role}`);
    try {
      const client = await database.connect();
      await client.query(`SET ROLE ${role}`);
      const query = through(client);
      await expect(connectedTable(database, { query })).rejects.toMatchObject({
        code: '42501',
      });

      await connectedTable(database);
      await database.query(
        `GRANT SELECT, INSERT, UPDATE ON replicant_checkpoints TO ${role}`,
      );
      const table = await connectedTable(database, { query });
      expect(await table.advance(query, transaction(0x10n, 0x20n))).toBe(true);
      await table.confirm(0x30n);
      expect(await table.load()).toMatchObject({
        commitLsn: 0x10n,
        confirmedLsn: 0x30n,
      });
    } finally {
      await database.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
    }
  });

  it('keeps two slots apart', async () => {
    const database = await suite.database();
    const orders = await connectedTable(database);
    const audit = await connectedTable(database, {
      slotName: 'audit',
      source: OTHER_SOURCE,
    });
    await orders.advance(pooled(database), transaction(0x100n, 0x120n));
    expect(await audit.load()).toBeNull();
    expect(
      await audit.advance(pooled(database), transaction(0x10n, 0x20n, 'audit')),
    ).toBe(true);
    await audit.confirm(0x30n);
    expect(await orders.load()).toEqual({
      commitLsn: 0x100n,
      confirmedLsn: 0x120n,
      ...SOURCE,
      relations: null,
      progress: null,
    });
    expect(await audit.load()).toEqual({
      commitLsn: 0x10n,
      confirmedLsn: 0x30n,
      ...OTHER_SOURCE,
      relations: null,
      progress: null,
    });
  });

  it('says where it is', async () => {
    const database = await suite.database();
    const table = await connectedTable(database);
    const [expected] = await database.query<{ oid: number; server: string }>(
      `SELECT 'replicant_checkpoints'::regclass::oid AS oid, system_identifier::text AS server FROM pg_control_system()`,
    );
    expect(await table.home()).toEqual({
      systemIdentifier: expected?.server,
      database: database.name,
      relationOid: expected?.oid,
      quotedName: 'public.replicant_checkpoints',
    });
  });

  it('says that its server is unknown when the role may not ask', async () => {
    const database = await suite.database();
    await connectedTable(database);
    const role = `asker_${database.name}`;
    await database.query(`CREATE ROLE ${role}`);
    await database.query(
      'REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC',
    );
    try {
      const client = await database.connect();
      await client.query(`SET ROLE ${role}`);
      const table = new CheckpointTable(through(client));
      expect(await table.home()).toMatchObject({
        systemIdentifier: null,
        database: database.name,
      });
    } finally {
      await database.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
    }
  });
});
