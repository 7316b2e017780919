import { describe, expect, it, onTestFinished } from 'vitest';
import type { PostgresCheckpointStore } from '../lib/engine/checkpoint/checkpoint-store.js';
import { ConnectionFault } from '../lib/engine/model/connection-fault.js';
import { connectedStore, sessionsNamed } from './support/checkpoint-stores.js';
import {
  OTHER_SOURCE,
  SOURCE,
  untilBlocked,
} from './support/checkpoint-tables.js';
import { useServer } from './support/suite.js';
import { TcpProxy } from './support/tcp-proxy.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer();

const FENCED = 'another process has written the checkpoint of this slot';

function rows(database: TestDatabase): Promise<unknown[]> {
  return database.query('SELECT * FROM replicant_checkpoints');
}

/** Every way to write is refused, and leaves what is there. */
async function expectFenced(
  database: TestDatabase,
  store: PostgresCheckpointStore,
): Promise<void> {
  const before = await rows(database);
  const writes = [
    () => store.commit(0x900n, 0x920n),
    () => store.confirm(0x920n),
  ];
  for (const write of writes) {
    const failure = await write().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(ConnectionFault);
    expect(failure).toMatchObject({ message: FENCED, retryAfterMs: null });
  }
  expect(await rows(database)).toEqual(before);
}

describe('a store cannot write behind', () => {
  it('a second instance that went on from its row', async () => {
    const database = await suite.database();
    const { store: stale, retries } = await connectedStore(database, {
      maxRetries: 5,
    });
    await stale.commit(0x100n, 0x120n);
    const { store } = await connectedStore(database);
    await store.commit(0x200n, 0x220n);
    await expectFenced(database, stale);
    expect(retries).toEqual([]);
    // Read anew, as at the next connect, it is a writer like any other.
    stale.identify({ pipeline: 'orders', slotName: 'orders', ...SOURCE });
    expect(await stale.load()).toMatchObject({ commitLsn: 0x200n });
    await stale.commit(0x300n, 0x320n);
    await expectFenced(database, store);
  });

  it('a second instance that moved the boundary alone', async () => {
    const database = await suite.database();
    const { store: stale } = await connectedStore(database);
    await stale.commit(0x100n, 0x120n);
    const { store } = await connectedStore(database);
    await store.confirm(0x180n);
    await expectFenced(database, stale);
  });

  it('the first row of a second instance', async () => {
    const database = await suite.database();
    const { store: stale } = await connectedStore(database);
    const { store } = await connectedStore(database);
    await store.commit(0x100n, 0x120n);
    await expectFenced(database, stale);
  });

  it.each([
    ['removed', 'DELETE FROM replicant_checkpoints'],
    [
      'set back',
      `UPDATE replicant_checkpoints SET commit_lsn = '0/80', confirmed_lsn = '0/90'`,
    ],
    [
      'set back the commit in',
      `UPDATE replicant_checkpoints SET commit_lsn = '0/80'`,
    ],
    [
      'emptied',
      'UPDATE replicant_checkpoints SET commit_lsn = NULL, confirmed_lsn = NULL',
    ],
  ])('an operator who has %s the row', async (_, sql) => {
    const database = await suite.database();
    const { store } = await connectedStore(database);
    await store.commit(0x100n, 0x120n);
    await database.query(sql);
    await expectFenced(database, store);
  });

  it('a row of another server, or of a later timeline, at the same positions', async () => {
    const database = await suite.database();
    const { store } = await connectedStore(database);
    await store.commit(0x100n, 0x120n);
    await database.query('UPDATE replicant_checkpoints SET timeline = 2');
    await expectFenced(database, store);
    await database.query(
      `UPDATE replicant_checkpoints SET timeline = 1, system_identifier = '${OTHER_SOURCE.systemIdentifier}'`,
    );
    await expectFenced(database, store);
  });

  it('a row that was written while it waited for the lock', async () => {
    const database = await suite.database();
    const { store } = await connectedStore(database);
    await store.commit(0x100n, 0x120n);
    const operator = await database.connect();
    await operator.query('BEGIN');
    await operator.query(
      `UPDATE replicant_checkpoints SET confirmed_lsn = '0/130'`,
    );
    const outcome = store
      .commit(0x200n, 0x220n)
      .catch((error: unknown) => error);
    await untilBlocked(database);
    await operator.query('COMMIT');
    expect(await outcome).toMatchObject({ message: FENCED });
  });

  it('what it reads again within a connection', async () => {
    const database = await suite.database();
    const { store } = await connectedStore(database);
    await store.commit(0x100n, 0x120n);
    expect(await store.load()).toMatchObject({ commitLsn: 0x100n });
    await database.query('DELETE FROM replicant_checkpoints');
    await expect(store.load()).rejects.toThrow(FENCED);
    await expect(store.commit(0x200n, 0x220n)).rejects.toThrow(FENCED);
    expect(await rows(database)).toEqual([]);
  });

  it('a row on a standby of any timeline, which does not tell its own', async () => {
    const database = await suite.database();
    const { store: primary } = await connectedStore(database, {
      source: { ...SOURCE, timeline: 3 },
    });
    await primary.commit(0x100n, 0x120n);
    const { store: standby } = await connectedStore(database, {
      source: { ...SOURCE, timeline: 0 },
    });
    await standby.commit(0x200n, 0x220n);
    await expectFenced(database, primary);
  });
});

describe('a write whose answer was lost', () => {
  it.each([
    [
      'commit',
      (store: PostgresCheckpointStore) => store.commit(0x200n, 0x220n),
    ],
    ['confirm', (store: PostgresCheckpointStore) => store.confirm(0x220n)],
  ])('is taken for written: %s', async (_, write) => {
    const database = await suite.database();
    const proxy = await TcpProxy.start(database.connection);
    onTestFinished(() => proxy.close());
    const { store, retries } = await connectedStore(database, {
      connection: {
        ...database.connection,
        host: proxy.host,
        port: proxy.port,
      },
      maxRetries: 1,
    });
    await store.commit(0x100n, 0x120n);
    proxy.halfOpen('server-to-client');
    const writing = write(store);
    await waitFor(async () => {
      const [row] = await database.query<{ lsn: string }>(
        'SELECT confirmed_lsn AS lsn FROM replicant_checkpoints',
      );
      return row?.lsn === '0/220';
    });
    const before = await database.query(
      'SELECT xmin, * FROM replicant_checkpoints',
    );
    proxy.restore();
    proxy.reset();
    await writing;
    expect(retries).toHaveLength(1);
    expect(
      await database.query('SELECT xmin, * FROM replicant_checkpoints'),
    ).toEqual(before);
    await store.commit(0x300n, 0x320n);
    expect(await store.load()).toMatchObject({ commitLsn: 0x300n });
  });

  it('is taken for written when it was the first row', async () => {
    const database = await suite.database();
    const { store } = await connectedStore(database);
    const { store: earlier } = await connectedStore(database);
    await earlier.commit(0x100n, 0x120n);
    await store.commit(0x100n, 0x120n);
    expect(await rows(database)).toHaveLength(1);
    await store.commit(0x200n, 0x220n);
  });
});

it('a write that waits is cut when the pipeline stops', async () => {
  const database = await suite.database();
  const { store, abort } = await connectedStore(database, { maxRetries: 5 });
  await store.commit(0x100n, 0x120n);
  const operator = await database.connect();
  await operator.query('BEGIN; LOCK replicant_checkpoints');
  const outcome = store.commit(0x200n, 0x220n).catch((error: unknown) => error);
  await untilBlocked(database);
  abort.abort();
  expect(await outcome).toMatchObject({
    name: 'ConnectionFault',
    message: 'the pipeline was stopped',
  });
  await operator.query('ROLLBACK');
  await waitFor(async () => (await sessionsNamed(database)).length === 0);
});
