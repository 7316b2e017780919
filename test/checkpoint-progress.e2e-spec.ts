import { describe, expect, it } from 'vitest';
import { CheckpointMovedError } from '../lib/engine/checkpoint/checkpoint-moved-error.js';
import {
  CheckpointTable,
  type AppliedTransaction,
} from '../lib/engine/checkpoint/checkpoint-table.js';
import { capture } from './support/capture.js';
import {
  checkpointWriter,
  connectedTable,
  createOldTable,
  hasProgressColumn,
  OTHER_SOURCE,
  pooled,
  SOURCE,
  through,
  transaction,
  untilBlocked,
} from './support/checkpoint-tables.js';
import { haltedFor } from './support/halted.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';

const suite = useServer();

/** What a sink does with rows of a snapshot, or with a transaction. */
interface Work {
  /** Writes this with them. */
  readonly row?: string;
  readonly progress?: string;
  readonly tx?: AppliedTransaction;
  /** @default 'COMMIT' */
  readonly end?: 'COMMIT' | 'ROLLBACK';
}

/** Runs a handler in a database transaction of its own. */
async function handle(
  database: TestDatabase,
  table: CheckpointTable,
  { row, progress, tx, end = 'COMMIT' }: Work,
): Promise<void> {
  const client = await database.connect();
  await client.query('BEGIN');
  try {
    if (row !== undefined)
      await client.query('INSERT INTO copied VALUES ($1)', [row]);
    if (tx !== undefined) await table.advance(through(client), tx);
    if (progress !== undefined)
      await table.keepProgress(through(client), { progress });
    await client.query(end);
  } finally {
    await client.end();
  }
}

async function withCopied(): Promise<TestDatabase> {
  const database = await suite.database();
  await database.query('CREATE TABLE copied (row text)');
  return database;
}

function copied(database: TestDatabase): Promise<unknown[]> {
  return database
    .query<{ row: string }>('SELECT row FROM copied ORDER BY row')
    .then((rows) => rows.map(({ row }) => row));
}

/** As at the next connect. */
async function reconnect(table: CheckpointTable): Promise<unknown> {
  table.identify({ pipeline: 'orders', slotName: 'orders', ...SOURCE });
  return table.load();
}

async function expectMoved(work: Promise<void>): Promise<void> {
  await expect(work).rejects.toBeInstanceOf(CheckpointMovedError);
}

describe('progress in a checkpoint table', () => {
  it('is stored with the rows and read with the row', async () => {
    const database = await withCopied();
    const table = await connectedTable(database);
    expect(table.storedProgress).toBeNull();
    await handle(database, table, { row: 'a', progress: 'one' });
    expect(table.storedProgress).toBe('one');
    await handle(database, table, { row: 'b', progress: 'two' });
    const other = await connectedTable(database);
    expect(other.storedProgress).toBe('two');
    expect(await other.load()).toEqual({
      commitLsn: null,
      confirmedLsn: null,
      ...SOURCE,
      relations: null,
      progress: 'two',
    });
    expect(await copied(database)).toEqual(['a', 'b']);
  });

  it('keeps any text as it is', async () => {
    const database = await suite.database();
    const table = await connectedTable(database);
    const text = `{"k":["é","\\u0000\\"'",null],"x":"${'\u{1f600}\n'.repeat(1_000)}"}`;
    await table.storeProgress(text);
    const other = await connectedTable(database);
    expect(other.storedProgress).toBe(text);
  });

  it('does nothing in an initial snapshot, which has none', async () => {
    const database = await suite.database();
    const table = await connectedTable(database);
    await table.keepProgress(
      () => {
        throw new Error('asked');
      },
      { progress: null },
    );
    expect(await table.load()).toBeNull();
  });

  it('leaves the positions alone, and they leave it alone', async () => {
    const database = await withCopied();
    const table = await connectedTable(database);
    await table.confirm(0x80n);
    await handle(database, table, { progress: 'one' });
    await handle(database, table, { tx: transaction(0x100n, 0x120n) });
    expect(await table.load()).toMatchObject({
      commitLsn: 0x100n,
      confirmedLsn: 0x120n,
      progress: 'one',
    });
    await table.confirm(0x200n);
    await handle(database, table, { progress: 'two' });
    await table.retract(0x100n);
    expect(await table.load()).toMatchObject({
      commitLsn: 0xffn,
      confirmedLsn: 0x200n,
      progress: 'two',
    });
  });

  it('is stored by the library for a sink that did not', async () => {
    const database = await suite.database();
    const table = await connectedTable(database);
    await table.storeProgress('one');
    await table.storeProgress('two');
    await table.storeProgress('two');
    expect(table.storedProgress).toBe('two');
    expect(await table.load()).toMatchObject({ progress: 'two' });
  });

  it('is not written before the row was read', async () => {
    const database = await suite.database();
    const table = new CheckpointTable(pooled(database));
    await expect(table.storeProgress('one')).rejects.toThrow(
      'belongs to no pipeline yet',
    );
    table.identify({ pipeline: 'orders', slotName: 'orders', ...SOURCE });
    await expect(table.storeProgress('one')).rejects.toThrow(
      'cannot be written before pipeline orders has connected and read it',
    );
    await table.load();
    table.identify({ pipeline: 'orders', slotName: 'orders', ...SOURCE });
    await expect(table.storeProgress('one')).rejects.toThrow(
      'must be read before it is written',
    );
  });
});

describe('a handler that is called again', () => {
  it.each([
    ['without', false],
    ['with', true],
  ])(
    'stores the progress that was rolled back, %s a look at the row',
    async (_, looks) => {
      const database = await withCopied();
      const table = await connectedTable(database);
      for (const progress of ['one', 'two', 'three']) {
        await handle(database, table, { progress, end: 'ROLLBACK' });
        if (looks) await table.load();
        await handle(database, table, { progress, end: 'ROLLBACK' });
        if (looks) await table.load();
        await handle(database, table, { row: progress, progress });
      }
      expect(await copied(database)).toHaveLength(3);
      expect(await table.load()).toMatchObject({ progress: 'three' });
    },
  );

  it('goes by the transaction that was rolled back as little', async () => {
    const database = await withCopied();
    const table = await connectedTable(database);
    await handle(database, table, { progress: 'one' });
    const tx = transaction(0x100n, 0x120n);
    await handle(database, table, { tx, end: 'ROLLBACK' });
    await table.load();
    await handle(database, table, { progress: 'two' });
    await handle(database, table, { tx });
    await handle(database, table, { progress: 'three' });
    expect(await table.load()).toMatchObject({
      commitLsn: 0x100n,
      progress: 'three',
    });
  });

  it('stores it again when the answer of its commit was lost', async () => {
    const database = await withCopied();
    const table = await connectedTable(database);
    for (const progress of ['one', 'two']) {
      await handle(database, table, { progress });
      await handle(database, table, { progress });
    }
    expect(table.storedProgress).toBe('two');
  });
});

describe('a process that was cut off', () => {
  it('does not write rows behind one that went on with the snapshot', async () => {
    const database = await withCopied();
    const stale = await connectedTable(database);
    await handle(database, stale, { row: 'a', progress: 'one' });
    const table = await connectedTable(database);
    await handle(database, table, { row: 'b', progress: 'two' });
    for (const progress of ['one', 'two by stale', 'three'])
      await expectMoved(handle(database, stale, { row: 'stale', progress }));
    await expectMoved(stale.storeProgress('three'));
    expect(await copied(database)).toEqual(['a', 'b']);
    expect(await table.load()).toMatchObject({ progress: 'two' });
    // Read anew, as at the next connect, it is a writer like any other.
    expect(await reconnect(stale)).toMatchObject({ progress: 'two' });
    await handle(database, stale, { row: 'c', progress: 'three' });
    await expectMoved(handle(database, table, { progress: 'four' }));
  });

  it('does not write rows behind one that applied a transaction, which made them too old', async () => {
    const database = await withCopied();
    const earlier = await connectedTable(database);
    await handle(database, earlier, { row: 'a', progress: 'one' });
    const table = await connectedTable(database);
    await handle(database, table, {
      row: 'b',
      tx: transaction(0x100n, 0x120n),
    });
    await expectMoved(
      handle(database, earlier, { row: 'stale', progress: 'two' }),
    );
    expect(await copied(database)).toEqual(['a', 'b']);
  });

  it('does not write the first rows behind the first transaction', async () => {
    const database = await withCopied();
    const stale = await connectedTable(database);
    const table = await connectedTable(database);
    await handle(database, table, { tx: transaction(0x100n, 0x120n) });
    await expectMoved(
      handle(database, stale, { row: 'stale', progress: 'one' }),
    );
    expect(await copied(database)).toEqual([]);
  });

  it('writes nothing more after it has looked at the row', async () => {
    const database = await withCopied();
    const stale = await connectedTable(database);
    await handle(database, stale, { progress: 'one' });
    const table = await connectedTable(database);
    await handle(database, table, { progress: 'two' });
    expect(await stale.load()).toMatchObject({ progress: 'two' });
    await expectMoved(handle(database, stale, { progress: 'three' }));
    await handle(database, table, { progress: 'three' });
  });

  it('may write what the other has applied too: it was handed the same transaction', async () => {
    const database = await withCopied();
    const behind = await connectedTable(database);
    await handle(database, behind, { progress: 'one' });
    const table = await connectedTable(database);
    const tx = transaction(0x100n, 0x120n);
    await handle(database, table, { tx });
    await handle(database, behind, { tx });
    await handle(database, behind, { row: 'a', progress: 'two' });
    expect(await copied(database)).toEqual(['a']);
  });

  it.each([
    ['removed', 'DELETE FROM replicant_checkpoints'],
    [
      'set back',
      `UPDATE replicant_checkpoints SET snapshot_progress = 'earlier'`,
    ],
    ['emptied', 'UPDATE replicant_checkpoints SET snapshot_progress = NULL'],
    [
      'set back the commit in',
      `UPDATE replicant_checkpoints SET commit_lsn = '0/80'`,
    ],
    [
      'given another server',
      `UPDATE replicant_checkpoints SET system_identifier = '${OTHER_SOURCE.systemIdentifier}'`,
    ],
    [
      'given a later timeline',
      'UPDATE replicant_checkpoints SET timeline = timeline + 1',
    ],
  ])('is like one whose row an operator has %s', async (_, sql) => {
    const database = await withCopied();
    const table = await connectedTable(database);
    await handle(database, table, { tx: transaction(0x100n, 0x120n) });
    await handle(database, table, { progress: 'one' });
    await database.query(sql);
    const before = await database.query('SELECT * FROM replicant_checkpoints');
    await expectMoved(
      handle(database, table, { row: 'stale', progress: 'two' }),
    );
    expect(await copied(database)).toEqual([]);
    expect(await database.query('SELECT * FROM replicant_checkpoints')).toEqual(
      before,
    );
  });

  it('names no progress in what it throws', async () => {
    const database = await withCopied();
    const stale = await connectedTable(database);
    const table = await connectedTable(database);
    await table.storeProgress('planted-secret-1');
    const failure = await stale
      .storeProgress('planted-secret-2')
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(CheckpointMovedError);
    expect(JSON.stringify(failure) + String(failure)).not.toContain('secret');
  });
});

describe('of two writers at the same time', () => {
  it.each([
    ['READ COMMITTED', 'COMMIT', 'CheckpointMovedError', 'begun'],
    ['READ COMMITTED', 'COMMIT', 'CheckpointMovedError', 'new'],
    ['REPEATABLE READ', 'COMMIT', '40001', 'begun'],
    ['READ COMMITTED', 'ROLLBACK', 'stored', 'begun'],
    ['READ COMMITTED', 'ROLLBACK', 'stored', 'new'],
    ['REPEATABLE READ', 'ROLLBACK', 'stored', 'begun'],
  ] as const)(
    'the second waits under %s for the %s and gets: %s (the row is %s)',
    async (isolation, end, expected, state) => {
      const database = await suite.database();
      if (state === 'begun')
        await (await connectedTable(database)).storeProgress('one');
      const table = await connectedTable(database);
      const rival = await connectedTable(database);
      const first = await database.connect();
      const second = await database.connect();
      for (const client of [first, second]) {
        // The first query takes the snapshot, which must be older than the other writer's commit.
        await client.query(`BEGIN ISOLATION LEVEL ${isolation}`);
        await client.query('SELECT FROM replicant_checkpoints');
      }
      await table.keepProgress(through(first), { progress: 'two' });
      const outcome = rival
        .keepProgress(through(second), { progress: 'two of the rival' })
        .then(
          () => 'stored',
          (error: unknown) => {
            if (error instanceof CheckpointMovedError) return error.name;
            return error instanceof Error && 'code' in error && error.code;
          },
        );
      await untilBlocked(database);
      await first.query(end);
      expect(await outcome).toBe(expected);
      await second.query('COMMIT');
      const { storedProgress } = await connectedTable(database);
      expect(storedProgress).toBe(
        end === 'COMMIT' ? 'two' : 'two of the rival',
      );
    },
  );
});

describe('a table that an earlier version has made', () => {
  it('serves pipelines without snapshots as it is', async () => {
    const database = await suite.database();
    await createOldTable(database);
    const table = await connectedTable(database);
    expect(await table.load()).toBeNull();
    await table.advance(pooled(database), transaction(0x100n, 0x120n));
    await table.confirm(0x180n);
    expect(await table.load()).toEqual({
      commitLsn: 0x100n,
      confirmedLsn: 0x180n,
      ...SOURCE,
      relations: null,
      progress: null,
    });
    await table.retract(0x100n);
    expect(await hasProgressColumn(database)).toBe(false);
  });

  it('gets the column when progress is to be stored, by many at once', async () => {
    const database = await suite.database();
    await createOldTable(database);
    const other = await connectedTable(database, { slotName: 'audit' });
    const tables = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const client = await database.connect();
        return connectedTable(database, { query: through(client) });
      }),
    );
    await Promise.all(tables.map((table) => table.prepareProgress()));
    await tables[0]?.prepareProgress();
    await tables[0]?.storeProgress('one');
    expect(await tables[1]?.load()).toMatchObject({ progress: 'one' });
    await other.advance(pooled(database), transaction(1n, 2n, 'audit'));
    expect(await other.load()).toMatchObject({ commitLsn: 1n, progress: null });
  });

  it('leaves a table alone that has the column, whoever owns it', async () => {
    const database = await suite.database();
    await connectedTable(database);
    const role = await checkpointWriter(database);
    const client = await database.connect();
    await client.query(`SET ROLE ${role}`);
    const table = await connectedTable(database, { query: through(client) });
    await table.prepareProgress();
    await table.storeProgress('one');
    await table.storeProgress('two');
    expect(await table.load()).toMatchObject({ progress: 'two' });
  });

  it('halts with the statement to run when the role may not add the column', async () => {
    const { source, target } = await sourceAndTarget(suite);
    await createOldTable(target);
    const role = await checkpointWriter(target);
    const client = await target.connect();
    await client.query(`SET ROLE ${role}`);
    const keeper = new CheckpointTable(through(client));
    const checkpoint = { kind: 'keeper', keeper } as const;
    const before = capture(source, { target, checkpoint });
    before.pipeline.start();
    await before.pipeline.whenStreaming();
    await before.pipeline.stop();

    const { pipeline } = capture(source, {
      target,
      checkpoint,
      goForwardOnly: false,
      snapshot: { mode: 'incremental' },
      sink: { async snapshot() {} },
    });
    pipeline.start();
    const halt = await haltedFor(pipeline, 'checkpoint/progress_column');
    const statement =
      'ALTER TABLE public.replicant_checkpoints ADD COLUMN IF NOT EXISTS snapshot_progress text';
    expect(halt.detail).toBe(
      `the role does not own public.replicant_checkpoints; run: ${statement}`,
    );
    await target.query(statement);
    pipeline.start();
    await pipeline.whenStreaming();
  });
});
