import type { Client } from 'pg';
import { describe, expect, it } from 'vitest';
import { CheckpointIdentityError } from '../lib/sinks/checkpoint-identity-error.js';
import type { CheckpointQuery } from '../lib/sinks/checkpoint-query.js';
import { CheckpointTable } from '../lib/sinks/checkpoint-table.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

const SERVER = { systemIdentifier: '7000000000000000001', timeline: 1 };
const FOREIGN = { systemIdentifier: '7000000000000000002', timeline: 1 };

const suite = useServer();

interface TableSettings {
  readonly query?: CheckpointQuery;
  readonly name?: string;
  readonly slotName?: string;
  readonly server?: {
    readonly systemIdentifier: string;
    readonly timeline: number;
  };
}

/** As a pipeline leaves it after the connect. */
async function connectedTable(
  database: TestDatabase,
  settings: TableSettings = {},
): Promise<CheckpointTable> {
  const { name, slotName = 'orders', server = SERVER } = settings;
  const table = new CheckpointTable(
    settings.query ?? ((sql, values) => database.query(sql, values)),
    name === undefined ? {} : { table: name },
  );
  table.identify({ pipeline: slotName, slotName, ...server });
  await table.load();
  return table;
}

function transaction(
  commitLsn: bigint,
  commitEndLsn: bigint | null,
  slotName = 'orders',
) {
  return { slotName, commitLsn, commitEndLsn };
}

function through(client: Client): CheckpointQuery {
  return (sql, values) => client.query(sql, values);
}

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

  it('has the columns that docs/checkpoints.md lists', async () => {
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
      { name: 'updated_at', type: 'timestamp with time zone', required: true },
    ]);
  });

  it('may have any name that PostgreSQL accepts', async () => {
    const database = await suite.database();
    for (const name of [
      'Mixed Case',
      'order',
      'q"uo\'te;--',
      'größe',
      '$$',
      '%I',
      'a.b',
      'x'.repeat(63),
    ]) {
      const table = await connectedTable(database, { name });
      await table.confirm(0x10n);
      expect(await table.load()).toMatchObject({ confirmedLsn: 0x10n });
      const [found] = await database.query<{
        relname: string;
        relnamespace: string;
      }>(
        'SELECT relname, relnamespace::regnamespace::text FROM pg_class WHERE oid = $1::oid',
        [(await table.home()).relationOid],
      );
      expect(found).toEqual({ relname: name, relnamespace: 'public' });
    }
  });

  describe('under a search path', () => {
    it('is created in its first schema and stays there when the path changes', async () => {
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

    it('is used in a later schema when it exists there', async () => {
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

    it('is refused by name when the path leads nowhere', async () => {
      const database = await suite.database();
      const client = await database.connect();
      await client.query('SET search_path = nowhere');
      await expect(
        connectedTable(database, { query: through(client) }),
      ).rejects.toThrow(/search_path .* names no schema that exists/);
    });
  });

  describe('with a role that may not create tables', () => {
    it('is used when it exists and not before', async () => {
      const database = await suite.database();
      const role = `writer_${database.name}`;
      await database.query(`CREATE ROLE ${role}`);
      try {
        const client = await database.connect();
        await client.query(`SET ROLE ${role}`);
        const query = through(client);
        await expect(connectedTable(database, { query })).rejects.toMatchObject(
          { code: '42501' },
        );

        await connectedTable(database);
        await database.query(
          `GRANT SELECT, INSERT, UPDATE ON replicant_checkpoints TO ${role}`,
        );
        const table = await connectedTable(database, { query });
        expect(await table.advance(query, transaction(0x10n, 0x20n))).toBe(
          true,
        );
        await table.confirm(0x30n);
        expect(await table.load()).toMatchObject({
          commitLsn: 0x10n,
          confirmedLsn: 0x30n,
        });
      } finally {
        await database.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
      }
    });
  });

  it('is found where it is, with the server it is on', async () => {
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

describe('advance', () => {
  it('is true for the first transaction and stores what it was given', async () => {
    const database = await suite.database();
    const table = await connectedTable(database, {
      server: { ...SERVER, timeline: 3 },
    });
    expect(await table.load()).toBeNull();
    const tx = transaction(0xffff_ffff_ffff_ff00n, 0xffff_ffff_ffff_fff8n);
    expect(
      await table.advance((sql, values) => database.query(sql, values), tx),
    ).toBe(true);
    expect(table.advancedTo).toBe(tx.commitLsn);
    expect(await table.load()).toEqual({
      commitLsn: tx.commitLsn,
      confirmedLsn: tx.commitEndLsn,
      systemIdentifier: SERVER.systemIdentifier,
      timeline: 3,
    });
    expect(table.advancedTo).toBeNull();
  });

  it.each([
    {
      stored: 'a commit',
      tx: 'the same transaction',
      commit: 0x100n,
      expected: false,
    },
    {
      stored: 'a commit',
      tx: 'an earlier one',
      commit: 0xf0n,
      expected: false,
    },
    {
      stored: 'a commit',
      tx: 'one inside its record',
      commit: 0x11fn,
      expected: false,
    },
    {
      stored: 'a commit',
      tx: 'the one that begins at its end',
      commit: 0x120n,
      expected: true,
    },
    { stored: 'a commit', tx: 'a later one', commit: 0x200n, expected: true },
    { stored: 'a boundary', tx: 'one below', commit: 0x2ffn, expected: false },
    {
      stored: 'a boundary',
      tx: 'the one that begins there',
      commit: 0x300n,
      expected: true,
    },
    { stored: 'a boundary', tx: 'a later one', commit: 0x301n, expected: true },
    {
      stored: 'a commit without end',
      tx: 'the same transaction',
      commit: 0x100n,
      expected: false,
    },
    {
      stored: 'a commit without end',
      tx: 'the next position',
      commit: 0x101n,
      expected: true,
    },
  ])(
    'after $stored is $expected for $tx',
    async ({ stored, commit, expected }) => {
      const database = await suite.database();
      const query: CheckpointQuery = (sql, values) =>
        database.query(sql, values);
      const table = await connectedTable(database);
      if (stored === 'a boundary') await table.confirm(0x300n);
      else
        await table.advance(
          query,
          transaction(0x100n, stored === 'a commit' ? 0x120n : null),
        );
      const before = await table.load();

      expect(
        await table.advance(query, transaction(commit, commit + 0x20n)),
      ).toBe(expected);
      expect(table.advancedTo).toBe(expected ? commit : null);
      const after = await table.load();
      if (expected)
        expect(after).toMatchObject({
          commitLsn: commit,
          confirmedLsn: commit + 0x20n,
        });
      else expect(after).toEqual(before);
    },
  );

  it('leaves the boundary when the end is not known, and never lowers it', async () => {
    const database = await suite.database();
    const query: CheckpointQuery = (sql, values) => database.query(sql, values);
    const table = await connectedTable(database);
    await table.advance(query, transaction(0x10n, null));
    expect(await table.load()).toMatchObject({
      commitLsn: 0x10n,
      confirmedLsn: null,
    });
    await table.confirm(0x100n);
    await table.advance(query, transaction(0x100n, null));
    expect(await table.load()).toMatchObject({
      commitLsn: 0x100n,
      confirmedLsn: 0x100n,
    });
  });

  it('takes over the timeline and the time of the write', async () => {
    const database = await suite.database();
    const query: CheckpointQuery = (sql, values) => database.query(sql, values);
    const table = await connectedTable(database);
    await table.advance(query, transaction(0x10n, 0x20n));
    await database.query(
      `UPDATE replicant_checkpoints SET updated_at = 'epoch', relations = '{"kept": 1}'`,
    );
    const promoted = await connectedTable(database, {
      server: { ...SERVER, timeline: 2 },
    });
    await promoted.advance(query, transaction(0x20n, 0x30n));
    expect(await promoted.load()).toMatchObject({ timeline: 2 });
    const [row] = await database.query(
      `SELECT updated_at > now() - interval '1 minute' AS fresh, relations FROM replicant_checkpoints`,
    );
    expect(row).toEqual({ fresh: true, relations: { kept: 1 } });
  });

  it('is undone with the transaction it runs in', async () => {
    const database = await suite.database();
    const table = await connectedTable(database);
    const client = await database.connect();
    for (const expected of [null, { commitLsn: 0x10n }]) {
      if (expected !== null) {
        await table.advance(
          (sql, values) => database.query(sql, values),
          transaction(0x10n, 0x20n),
        );
      }
      await client.query('BEGIN');
      expect(
        await table.advance(through(client), transaction(0x40n, 0x50n)),
      ).toBe(true);
      await client.query('ROLLBACK');
      const stored = await table.load();
      if (expected === null) expect(stored).toBeNull();
      else expect(stored).toMatchObject(expected);
    }
    expect(
      await table.advance(
        (sql, values) => database.query(sql, values),
        transaction(0x40n, 0x50n),
      ),
    ).toBe(true);
  });

  it('keeps two slots of one table apart', async () => {
    const database = await suite.database();
    const query: CheckpointQuery = (sql, values) => database.query(sql, values);
    const orders = await connectedTable(database);
    const audit = await connectedTable(database, {
      slotName: 'audit',
      server: FOREIGN,
    });
    expect(await orders.advance(query, transaction(0x100n, 0x120n))).toBe(true);
    expect(await audit.load()).toBeNull();
    expect(await audit.advance(query, transaction(0x10n, 0x20n, 'audit'))).toBe(
      true,
    );
    await audit.confirm(0x30n);
    expect(await orders.load()).toMatchObject({
      commitLsn: 0x100n,
      confirmedLsn: 0x120n,
    });
    expect(await audit.load()).toMatchObject({
      commitLsn: 0x10n,
      confirmedLsn: 0x30n,
    });
  });

  it('takes rows and objects that hold rows', async () => {
    const database = await suite.database();
    const client = await database.connect();
    const inObject = await connectedTable(database, { query: through(client) });
    expect(
      await inObject.advance(through(client), transaction(0x10n, 0x20n)),
    ).toBe(true);
    const asRows: CheckpointQuery = async (sql, values) =>
      (await client.query(sql, values)).rows;
    const rows = await connectedTable(database, { query: asRows });
    expect(await rows.load()).toMatchObject({ commitLsn: 0x10n });
    expect(await rows.advance(asRows, transaction(0x10n, 0x20n))).toBe(false);
  });

  describe('with a row of another server', () => {
    it('throws, whatever the positions are, and leaves the row', async () => {
      const database = await suite.database();
      const query: CheckpointQuery = (sql, values) =>
        database.query(sql, values);
      const foreign = await connectedTable(database, { server: FOREIGN });
      await foreign.advance(query, transaction(0x100n, 0x120n));
      const before = await database.query(
        'SELECT * FROM replicant_checkpoints',
      );
      const table = await connectedTable(database);
      for (const commit of [0x10n, 0x100n, 0x200n]) {
        const advance = table.advance(query, transaction(commit, commit + 1n));
        await expect(advance).rejects.toThrow(CheckpointIdentityError);
        await expect(table.confirm(commit)).rejects.toThrow(
          CheckpointIdentityError,
        );
      }
      expect(table.advancedTo).toBeNull();
      expect(
        await database.query('SELECT * FROM replicant_checkpoints'),
      ).toEqual(before);
      expect(await table.load()).toMatchObject({
        systemIdentifier: FOREIGN.systemIdentifier,
      });
    });

    it('throws too when that row is the first and was written at the same moment', async () => {
      const database = await suite.database();
      const [ours, theirs] = await Promise.all([
        database.connect(),
        database.connect(),
      ]);
      const foreign = await connectedTable(database, { server: FOREIGN });
      const table = await connectedTable(database);
      await theirs.query('BEGIN');
      await foreign.advance(through(theirs), transaction(0x100n, 0x120n));
      const advance = table.advance(through(ours), transaction(0x100n, 0x120n));
      const outcome = advance.then(String, (error: unknown) => error);
      await untilBlocked(database);
      await theirs.query('COMMIT');
      expect(await outcome).toBeInstanceOf(CheckpointIdentityError);
    });
  });
});

describe('a second writer with the same transaction', () => {
  const cases = [true, false].flatMap((firstRow) =>
    ['READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE'].flatMap((isolation) =>
      ['COMMIT', 'ROLLBACK'].map((end) => ({ firstRow, isolation, end })),
    ),
  );

  it.each(cases)(
    'waits under $isolation for the first to $end (first row: $firstRow)',
    async ({ firstRow, isolation, end }) => {
      const database = await suite.database();
      const [first, second] = await Promise.all([
        database.connect(),
        database.connect(),
      ]);
      const tables = await Promise.all([
        connectedTable(database),
        connectedTable(database),
      ]);
      if (!firstRow) {
        await tables[0].advance(
          (sql, values) => database.query(sql, values),
          transaction(0x10n, 0x20n),
        );
      }
      const tx = transaction(0x100n, 0x120n);
      for (const client of [first, second]) {
        // A snapshot is taken by the first query, and must be older than the other one's commit.
        await client.query(`BEGIN ISOLATION LEVEL ${isolation}`);
        await client.query('SELECT FROM replicant_checkpoints');
      }
      expect(await tables[0].advance(through(first), tx)).toBe(true);
      let settled = false;
      const outcome = tables[1]
        .advance(through(second), tx)
        .catch((error: unknown) => error)
        .finally(() => (settled = true));
      await untilBlocked(database);
      expect(settled).toBe(false);
      await first.query(end);

      if (end === 'ROLLBACK') {
        expect(await outcome).toBe(true);
        await second.query('COMMIT');
      } else if (isolation === 'READ COMMITTED') {
        expect(await outcome).toBe(false);
        await second.query('COMMIT');
      } else {
        expect(await outcome).toMatchObject({ code: '40001' });
        await second.query('ROLLBACK');
      }
      expect(await tables[0].load()).toMatchObject({
        commitLsn: 0x100n,
        confirmedLsn: 0x120n,
      });
    },
  );

  it('applies each of 200 transactions once when four processes race for them', async () => {
    const database = await suite.database();
    await database.query('CREATE TABLE applied (commit_lsn pg_lsn)');
    const clients = await Promise.all(
      [1, 2, 3, 4].map(() => database.connect()),
    );
    const transactions = Array.from({ length: 200 }, (_, index) => {
      const commit = BigInt(index + 1) * 0x100n;
      return transaction(commit, commit + 0x100n);
    });
    await Promise.all(
      clients.map(async (client) => {
        const table = await connectedTable(database, {
          query: through(client),
        });
        for (const tx of transactions) {
          await client.query('BEGIN');
          if (await table.advance(through(client), tx)) {
            await client.query(
              'INSERT INTO applied VALUES ($1::text::pg_lsn)',
              [`0/${tx.commitLsn.toString(16)}`],
            );
          }
          await client.query('COMMIT');
        }
      }),
    );
    const [counts] = await database.query(
      'SELECT count(*)::int AS rows, count(DISTINCT commit_lsn)::int AS transactions FROM applied',
    );
    expect(counts).toEqual({ rows: 200, transactions: 200 });
  });
});

describe('confirm', () => {
  it('stores a boundary without a transaction', async () => {
    const database = await suite.database();
    const table = await connectedTable(database);
    await table.confirm(0x1_0000_0000n);
    expect(await table.load()).toEqual({
      commitLsn: null,
      confirmedLsn: 0x1_0000_0000n,
      ...SERVER,
    });
    expect(table.advancedTo).toBeNull();
  });

  it('never moves backwards, and then writes nothing', async () => {
    const database = await suite.database();
    const table = await connectedTable(database);
    await table.advance(
      (sql, values) => database.query(sql, values),
      transaction(0x100n, 0x120n),
    );
    const before = await database.query(
      'SELECT xmin, * FROM replicant_checkpoints',
    );
    await table.confirm(0x11fn);
    await table.confirm(0x120n);
    expect(
      await database.query('SELECT xmin, * FROM replicant_checkpoints'),
    ).toEqual(before);
    await table.confirm(0x121n);
    expect(await table.load()).toMatchObject({
      commitLsn: 0x100n,
      confirmedLsn: 0x121n,
    });
  });

  it('waits for an open delivery and then keeps the higher position', async () => {
    const database = await suite.database();
    const client = await database.connect();
    const table = await connectedTable(database);
    await client.query('BEGIN');
    await table.advance(through(client), transaction(0x100n, 0x120n));
    const confirmed = table.confirm(0x110n);
    await untilBlocked(database);
    await client.query('COMMIT');
    await confirmed;
    expect(await table.load()).toMatchObject({
      commitLsn: 0x100n,
      confirmedLsn: 0x120n,
    });
  });
});

function untilBlocked(database: TestDatabase): Promise<unknown> {
  return waitFor(
    async () => {
      const waiting = await database.query(
        `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
      return waiting.length > 0;
    },
    { message: 'the second writer to wait for a lock' },
  );
}
