import { describe, expect, it, onTestFinished } from 'vitest';
import type { PostgresCheckpointStore } from '../lib/engine/checkpoint/checkpoint-store.js';
import { ConnectionFault } from '../lib/engine/model/connection-fault.js';
import { HaltError } from '../lib/engine/model/halt.js';
import {
  connectedStore,
  identifiedStore,
} from './support/checkpoint-stores.js';
import {
  checkpointWriter,
  connectedTable,
  createOldTable,
  hasProgressColumn,
  OTHER_SOURCE,
  SOURCE,
  transaction,
  pooled,
} from './support/checkpoint-tables.js';
import { useServer } from './support/suite.js';
import { TcpProxy } from './support/tcp-proxy.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer();

const FENCED = 'another process has written the checkpoint of this slot';

function rows(database: TestDatabase): Promise<unknown[]> {
  return database.query('SELECT xmin, * FROM replicant_checkpoints');
}

async function expectFenced(
  database: TestDatabase,
  store: PostgresCheckpointStore,
): Promise<void> {
  const before = await rows(database);
  const failure = await store
    .storeProgress('stale')
    .catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(ConnectionFault);
  expect(failure).toMatchObject({ message: FENCED, retryAfterMs: null });
  expect(await rows(database)).toEqual(before);
}

/** No progress can be written any more. */
async function refuseProgress(database: TestDatabase): Promise<void> {
  await database.query(
    'ALTER TABLE replicant_checkpoints ADD CONSTRAINT refused CHECK (snapshot_progress IS NULL) NOT VALID',
  );
}

async function haltOf(work: Promise<unknown>): Promise<HaltError['halt']> {
  const failure = await work.catch((error: unknown) => error);
  if (failure instanceof HaltError) return failure.halt;
  throw failure;
}

describe('progress in the store of the library', () => {
  it('begins a row, and is read with it', async () => {
    const database = await suite.database();
    const { store } = await connectedStore(database);
    expect(store.storedProgress).toBeNull();
    await store.storeProgress('one');
    expect(store.storedProgress).toBe('one');
    await store.storeProgress('two');
    const { store: other } = await connectedStore(database);
    expect(other.storedProgress).toBe('two');
    expect(await other.load()).toEqual({
      commitLsn: null,
      confirmedLsn: null,
      ...SOURCE,
      relations: null,
      progress: 'two',
    });
  });

  it('leaves the positions and shapes alone, and they leave it alone', async () => {
    const database = await suite.database();
    const { store } = await connectedStore(database);
    await store.confirm(0x80n);
    await store.storeProgress('one');
    store.keepRelations('{"1": "a"}');
    await store.commit(0x100n, 0x120n);
    expect(store.storedProgress).toBe('one');
    store.keepRelations('{"2": "b"}');
    await store.storeProgress('two');
    expect(await store.load()).toMatchObject({
      commitLsn: 0x100n,
      confirmedLsn: 0x120n,
      relations: '{"1": "a"}',
      progress: 'two',
    });
    await store.confirm(0x200n);
    expect(await store.load()).toMatchObject({
      confirmedLsn: 0x200n,
      progress: 'two',
    });
  });

  it('is not written before the row was read', async () => {
    const database = await suite.database();
    const { store } = identifiedStore(database);
    await expect(store.storeProgress('one')).rejects.toThrow(
      'The checkpoint must be read before it is written.',
    );
  });

  it('is that of CheckpointTable', async () => {
    const database = await suite.database();
    const table = await connectedTable(database);
    await table.storeProgress('one');
    const { store } = await connectedStore(database);
    await store.storeProgress('two');
    expect(await table.load()).toEqual(await store.load());
  });
});

describe('it is fenced', () => {
  it.each([
    ['went on with the snapshot', (s) => s.storeProgress('two')],
    ['did a transaction', (s) => s.commit(0x200n, 0x220n)],
    ['moved the boundary', (s) => s.confirm(0x200n)],
  ] satisfies [string, (store: PostgresCheckpointStore) => Promise<void>][])(
    'against a second instance that %s',
    async (_, write) => {
      const database = await suite.database();
      const { store: stale } = await connectedStore(database);
      await stale.commit(0x100n, 0x120n);
      await stale.storeProgress('one');
      const { store } = await connectedStore(database);
      await write(store);
      await expectFenced(database, stale);
      await expect(stale.load()).rejects.toThrow(FENCED);
      // Read anew, as at the next connect, it is a writer like any other.
      stale.identify({ pipeline: 'orders', slotName: 'orders', ...SOURCE });
      await stale.load();
      await stale.storeProgress('three');
      await expectFenced(database, store);
    },
  );

  it('against the first row of a second instance', async () => {
    const database = await suite.database();
    const { store: stale } = await connectedStore(database);
    const { store } = await connectedStore(database);
    await store.storeProgress('one');
    await expectFenced(database, stale);
  });

  it.each([
    ['removed', 'DELETE FROM replicant_checkpoints'],
    ['emptied', 'UPDATE replicant_checkpoints SET snapshot_progress = NULL'],
    [
      'given another server',
      `UPDATE replicant_checkpoints SET system_identifier = '${OTHER_SOURCE.systemIdentifier}'`,
    ],
    [
      'given a later timeline',
      'UPDATE replicant_checkpoints SET timeline = timeline + 1',
    ],
  ])('against an operator who has %s the row', async (_, sql) => {
    const database = await suite.database();
    const { store } = await connectedStore(database);
    await store.commit(0x100n, 0x120n);
    await store.storeProgress('one');
    await database.query(sql);
    await expectFenced(database, store);
  });
});

describe('a write of progress', () => {
  it('is taken for written when its answer was lost', async () => {
    const database = await suite.database();
    const proxy = await TcpProxy.start(database.connection);
    onTestFinished(() => proxy.close());
    const { host, port } = proxy;
    const { store, retries } = await connectedStore(database, {
      connection: { ...database.connection, host, port },
      maxRetries: 1,
    });
    for (const progress of ['one', 'two']) {
      proxy.halfOpen('server-to-client');
      const writing = store.storeProgress(progress);
      await waitFor(async () => {
        const [row] = await database.query<{ progress: string }>(
          'SELECT snapshot_progress AS progress FROM replicant_checkpoints',
        );
        return row?.progress === progress;
      });
      const before = await rows(database);
      proxy.restore();
      proxy.reset();
      await writing;
      expect(await rows(database)).toEqual(before);
    }
    expect(retries).toHaveLength(2);
    await store.storeProgress('three');
    expect(await store.load()).toMatchObject({ progress: 'three' });
  });

  it('is made again until it heals', async () => {
    const database = await suite.database();
    const { store, retries } = await connectedStore(database, {
      maxRetries: 1_000,
    });
    await refuseProgress(database);
    const writing = store.storeProgress('one');
    await waitFor(() => retries.length >= 3);
    await database.query(
      'ALTER TABLE replicant_checkpoints DROP CONSTRAINT refused',
    );
    await writing;
    expect(retries[0]).toEqual({ reason: 'server error 23514', attempt: 1 });
    expect(await store.load()).toMatchObject({ progress: 'one' });
  });

  it('halts after its retries, and stores nothing', async () => {
    const database = await suite.database();
    const { store, retries } = await connectedStore(database, {
      maxRetries: 2,
    });
    await store.confirm(0x100n);
    await refuseProgress(database);
    const halt = await haltOf(store.storeProgress('planted-secret'));
    expect(halt).toMatchObject({
      code: 'checkpoint_store_failed',
      detail: 'server error 23514, at 3 attempts',
      lsn: null,
    });
    expect(JSON.stringify(halt)).not.toContain('secret');
    expect(retries).toHaveLength(2);
    expect(store.storedProgress).toBeNull();
    await store.confirm(0x200n);
  });
});

describe('a table that an earlier version has made', () => {
  it('serves pipelines without snapshots as it is', async () => {
    const database = await suite.database();
    await createOldTable(database);
    const { store } = await connectedStore(database);
    await store.commit(0x100n, 0x120n);
    await store.confirm(0x180n);
    expect(await store.load()).toMatchObject({
      commitLsn: 0x100n,
      confirmedLsn: 0x180n,
      progress: null,
    });
    expect(await hasProgressColumn(database)).toBe(false);
  });

  it('gets the column when progress is to be stored', async () => {
    const database = await suite.database();
    await createOldTable(database);
    const table = await connectedTable(database);
    await table.advance(pooled(database), transaction(0x100n, 0x120n));
    const { store } = await connectedStore(database);
    await store.prepareProgress();
    await store.prepareProgress();
    await store.storeProgress('one');
    expect(await table.load()).toMatchObject({
      commitLsn: 0x100n,
      progress: 'one',
    });
  });

  it('halts with the statement to run when the role may not add it', async () => {
    const database = await suite.database();
    await createOldTable(database);
    const user = await checkpointWriter(database);
    const { store } = await connectedStore(database, {
      connection: {
        ...database.connection,
        options: `-c role=${user}`,
      },
    });
    const halt = await haltOf(store.prepareProgress());
    expect(halt.code).toBe('checkpoint/progress_column');
    const statement =
      'ALTER TABLE public.replicant_checkpoints ADD COLUMN IF NOT EXISTS snapshot_progress text';
    expect(halt.detail).toContain(`; run: ${statement}`);
    await database.query(statement);
    await store.prepareProgress();
    await store.storeProgress('one');
  });

  it('halts when its column is another one', async () => {
    const database = await suite.database();
    await createOldTable(database);
    await database.query(
      'ALTER TABLE replicant_checkpoints ADD COLUMN snapshot_progress bytea',
    );
    const { store } = await connectedStore(database);
    expect(await haltOf(store.prepareProgress())).toMatchObject({
      code: 'checkpoint_store/schema',
      detail:
        'in public.replicant_checkpoints: snapshot_progress is bytea, not text',
    });
  });
});
