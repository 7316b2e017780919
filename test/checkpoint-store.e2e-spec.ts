import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { PostgresCheckpointStore } from '../lib/engine/checkpoint/checkpoint-store.js';
import { ConnectionFault } from '../lib/engine/model/connection-fault.js';
import {
  connectedStore,
  identifiedStore,
  sessionsNamed,
} from './support/checkpoint-stores.js';
import {
  connectedTable,
  OTHER_SOURCE,
  SOURCE,
} from './support/checkpoint-tables.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer();

async function rows(database: TestDatabase): Promise<unknown[]> {
  return database.query('SELECT xmin, * FROM replicant_checkpoints');
}

describe('the checkpoint store', () => {
  it('creates its table as CheckpointTable does, and reads nothing from it', async () => {
    const database = await suite.database();
    const { store } = identifiedStore(database);
    expect(await store.load()).toBeNull();
    expect(store.advancedTo).toBeNull();
    const columns = `SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute
      WHERE attrelid = 'replicant_checkpoints'::regclass AND attnum > 0 ORDER BY attnum`;
    const ours = await database.query(columns);
    await store.close();
    await database.query('DROP TABLE replicant_checkpoints');
    await connectedTable(database);
    expect(ours).toEqual(await database.query(columns));
  });

  it('stores commits and their ends, and positions without a transaction', async () => {
    const database = await suite.database();
    const { store } = await connectedStore(database);
    await store.commit(0x100n, 0x120n);
    expect(store.advancedTo).toBe(0x100n);
    const { store: other } = identifiedStore(database);
    expect(await other.load()).toEqual({
      commitLsn: 0x100n,
      confirmedLsn: 0x120n,
      ...SOURCE,
      relations: null,
      progress: null,
    });
    await store.confirm(0x1_0000_0000n);
    expect(await store.load()).toMatchObject({
      commitLsn: 0x100n,
      confirmedLsn: 0x1_0000_0000n,
    });
    expect(store.advancedTo).toBeNull();
    await store.commit(0x1_0000_0000n, 0xffff_ffff_ffff_fff8n);
    expect(await store.load()).toMatchObject({
      commitLsn: 0x1_0000_0000n,
      confirmedLsn: 0xffff_ffff_ffff_fff8n,
    });
  });

  it('begins with a position without a transaction as well', async () => {
    const database = await suite.database();
    const { store } = await connectedStore(database);
    await store.confirm(0x100n);
    await store.commit(0x100n, 0x120n);
    expect(await store.load()).toMatchObject({
      commitLsn: 0x100n,
      confirmedLsn: 0x120n,
    });
  });

  it('reads what CheckpointTable has written, and the other way round', async () => {
    const database = await suite.database();
    const table = await connectedTable(database);
    await table.confirm(0x80n);
    const { store } = await connectedStore(database);
    await store.commit(0x100n, 0x120n);
    expect(await table.load()).toEqual(await store.load());
  });

  it('never moves backwards, and then writes nothing', async () => {
    const database = await suite.database();
    const { store } = await connectedStore(database);
    await store.commit(0x100n, 0x120n);
    const before = await rows(database);
    await store.confirm(0x120n);
    await store.confirm(0x10n);
    await store.commit(0x100n, 0x120n);
    await store.commit(0x80n, 0x90n);
    expect(await rows(database)).toEqual(before);
  });

  it('merges the shapes that it is given into those that are stored, with the next write', async () => {
    const database = await suite.database();
    const { store } = await connectedStore(database);
    store.keepRelations('{"1": "a", "2": "b"}');
    await store.commit(0x100n, 0x120n);
    store.keepRelations(null);
    await store.commit(0x200n, 0x220n);
    store.keepRelations('{"2": null, "3": "c"}');
    // At the stored position there are still shapes to store.
    await store.confirm(0x220n);
    const stored = await store.load();
    expect(JSON.parse(stored?.relations ?? '')).toEqual({ 1: 'a', 3: 'c' });
    store.identify({ pipeline: 'orders', slotName: 'orders', ...SOURCE });
    await store.load();
    const before = await rows(database);
    await store.confirm(0x220n);
    expect(await rows(database)).toEqual(before);
  });

  it('takes over the timeline and the time of the write', async () => {
    const database = await suite.database();
    const { store } = await connectedStore(database);
    await store.commit(0x100n, 0x120n);
    await database.query(
      `UPDATE replicant_checkpoints SET updated_at = 'epoch'`,
    );
    const { store: promoted } = await connectedStore(database, {
      source: { ...SOURCE, timeline: 2 },
    });
    await promoted.commit(0x200n, 0x220n);
    expect(
      await database.query(
        `SELECT timeline, updated_at > now() - interval '1 minute' AS fresh FROM replicant_checkpoints`,
      ),
    ).toEqual([{ timeline: 2, fresh: true }]);
  });

  it('keeps two slots apart', async () => {
    const database = await suite.database();
    const { store: orders } = await connectedStore(database);
    const { store: audit } = await connectedStore(database, {
      slotName: 'audit',
      source: OTHER_SOURCE,
    });
    await orders.commit(0x100n, 0x120n);
    await audit.commit(0x10n, 0x20n);
    await orders.commit(0x200n, 0x220n);
    expect(await orders.load()).toMatchObject({ commitLsn: 0x200n, ...SOURCE });
    expect(await audit.load()).toMatchObject({
      commitLsn: 0x10n,
      ...OTHER_SOURCE,
    });
  });

  it('says where it is, like CheckpointTable', async () => {
    const database = await suite.database();
    const { store } = await connectedStore(database);
    const table = await connectedTable(database);
    expect(await store.home()).toEqual(await table.home());
  });

  it('commits for good where the role would not wait for the disk, also behind a pooler that changes the session', async () => {
    const database = await suite.database();
    await connectedTable(database);
    // The triggers run before each write, as another session would find it, and when it commits.
    await database.query(`
      ALTER DATABASE "${database.name}" SET synchronous_commit = off;
      CREATE TABLE commits (setting text);
      CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN PERFORM set_config('synchronous_commit', 'off', false); RETURN NULL; END $$;
      CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN INSERT INTO commits VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;
      CREATE TRIGGER forget BEFORE INSERT OR UPDATE ON replicant_checkpoints FOR EACH STATEMENT EXECUTE FUNCTION forget();
      CREATE CONSTRAINT TRIGGER note AFTER INSERT OR UPDATE ON replicant_checkpoints
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note()`);
    const { store } = await connectedStore(database);
    await store.commit(0x100n, 0x120n);
    await store.commit(0x200n, 0x220n);
    await store.confirm(0x300n);
    expect(await database.query('SELECT setting FROM commits')).toEqual(
      Array.from({ length: 3 }, () => ({ setting: 'on' })),
    );
  });

  it('must be told the server and be read before it is written', async () => {
    const database = await suite.database();
    const { store } = identifiedStore(database);
    await expect(store.commit(1n, 2n)).rejects.toThrow(/must be read before/);
    await expect(store.confirm(2n)).rejects.toThrow(/must be read before/);
    const unknown = new PostgresCheckpointStore({
      target: {
        connection: { ...database.connection },
        applicationName: 'nobody',
        signal: new AbortController().signal,
      },
      options: { table: 'c', maxRetries: 0, retryBackoffMs: 1 },
      retrying: () => {},
    });
    await expect(unknown.load()).rejects.toThrow(/was not told the server/);
  });
});

describe('its table', () => {
  it('is created in the first schema of the search path, whatever there is of this name elsewhere', async () => {
    const database = await suite.database();
    await database.query(`
      CREATE SCHEMA "In fra"; CREATE SCHEMA other;
      CREATE TABLE other.replicant_checkpoints (slot_name int, commit_lsn bigint);
      ALTER DATABASE "${database.name}" SET search_path = missing, "In fra"`);
    const { store } = await connectedStore(database);
    await store.commit(0x100n, 0x120n);
    expect(await store.home()).toMatchObject({
      quotedName: '"In fra".replicant_checkpoints',
    });
    expect(
      await database.query(
        'SELECT slot_name FROM "In fra".replicant_checkpoints',
      ),
    ).toEqual([{ slot_name: 'orders' }]);
    expect(
      await database.query('SELECT FROM other.replicant_checkpoints'),
    ).toEqual([]);
  });

  it('may have columns of its own', async () => {
    const database = await suite.database();
    await connectedTable(database);
    await database.query(
      `ALTER TABLE replicant_checkpoints DROP COLUMN relations, ADD COLUMN note text DEFAULT 'ours', ADD COLUMN relations jsonb`,
    );
    const { store } = await connectedStore(database);
    await store.commit(0x100n, 0x120n);
    expect(
      await database.query('SELECT note FROM replicant_checkpoints'),
    ).toEqual([{ note: 'ours' }]);
  });

  it.each(['Mixed Case', `q"uo'te;--`, '%I', '$1', 'x'.repeat(63)])(
    'may be named %s',
    async (table) => {
      const database = await suite.database();
      const { store } = await connectedStore(database, { table });
      await store.commit(0x10n, 0x20n);
      await store.confirm(0x30n);
      expect(await store.load()).toMatchObject({ confirmedLsn: 0x30n });
    },
  );

  it('is created by ten stores at once, ten times', async () => {
    const database = await suite.database();
    for (let round = 0; round < 10; round += 1) {
      const stores = Array.from({ length: 10 }, (_, number) =>
        identifiedStore(database, { slotName: `s${number}` }),
      );
      await Promise.all(stores.map(({ store }) => store.load()));
      await Promise.all(stores.map(({ store }) => store.commit(1n, 2n)));
      expect(await rows(database)).toHaveLength(10);
      await Promise.all(stores.map(({ store }) => store.close()));
      await database.query('DROP TABLE replicant_checkpoints');
    }
  });
});

describe('its session', () => {
  it('is opened with the first call, kept, and closed', async () => {
    const database = await suite.database();
    const { store } = identifiedStore(database);
    expect(await sessionsNamed(database)).toEqual([]);
    await store.load();
    const [pid] = await sessionsNamed(database);
    await store.commit(0x100n, 0x120n);
    await store.confirm(0x200n);
    await store.home();
    expect(await sessionsNamed(database)).toEqual([pid]);
    await store.close();
    await waitFor(async () => (await sessionsNamed(database)).length === 0);
    await store.close();
    await store.commit(0x300n, 0x320n);
    expect(await sessionsNamed(database)).toHaveLength(1);
  });

  it('may be lost while nothing runs: the next call does not notice', async () => {
    const database = await suite.database();
    const { store, retries } = await connectedStore(database);
    const [pid] = await sessionsNamed(database);
    await database.query(`SELECT pg_terminate_backend(${pid})`);
    await waitFor(async () => (await sessionsNamed(database)).length === 0);
    // What the server said is here; this process has to look.
    await nextTurn();
    await nextTurn();
    await store.commit(0x100n, 0x120n);
    expect(retries).toEqual([]);
    expect(await store.load()).toMatchObject({ commitLsn: 0x100n });
  });

  it('is not opened any more when the pipeline has stopped', async () => {
    const database = await suite.database();
    const { store, abort } = await connectedStore(database);
    await store.close();
    abort.abort();
    await expect(store.commit(0x100n, 0x120n)).rejects.toThrow(ConnectionFault);
    await expect(store.load()).rejects.toThrow('the pipeline was stopped');
    expect(await rows(database)).toEqual([]);
    expect(await sessionsNamed(database)).toEqual([]);
  });
});
