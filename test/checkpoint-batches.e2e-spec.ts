import type { Client } from 'pg';
import { describe, expect, it } from 'vitest';
import { CheckpointIdentityError } from '../lib/engine/checkpoint/checkpoint-identity-error.js';
import {
  connectedTable,
  OTHER_SOURCE,
  pooled,
  SOURCE,
  through,
  transaction,
  untilBlocked,
} from './support/checkpoint-tables.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';

const suite = useServer();

/** Commits at these positions, each ending where the next may begin. */
function batch(...positions: readonly bigint[]) {
  return positions.map((lsn) => transaction(lsn, lsn + 0x20n));
}

async function begun(
  database: TestDatabase,
  isolation: string,
): Promise<Client> {
  const client = await database.connect();
  await client.query(`BEGIN ISOLATION LEVEL ${isolation}`);
  // Takes the snapshot.
  await client.query('SELECT FROM replicant_checkpoints');
  return client;
}

describe('advance over a batch', () => {
  it('gives the first batch back, and stores its end', async () => {
    const database = await suite.database();
    const table = await connectedTable(database);
    const given = batch(0x100n, 0x120n, 0x180n);
    expect(await table.advance(pooled(database), given)).toEqual(given);
    expect(table.advancedTo).toBe(0x180n);
    expect(await table.load()).toEqual({
      commitLsn: 0x180n,
      confirmedLsn: 0x1a0n,
      ...SOURCE,
      relations: null,
      progress: null,
    });
  });

  it.each([
    ['none', batch(0x300n, 0x320n), [0x300n, 0x320n]],
    ['what ends at the boundary', batch(0x1e0n, 0x200n, 0x220n), [0x220n]],
    ['a part', batch(0x1f0n, 0x200n, 0x240n, 0x260n), [0x240n, 0x260n]],
    ['all but what begins at the boundary', batch(0x220n), [0x220n]],
    ['all', batch(0x100n, 0x200n), []],
    ['all of what is inside the boundary', batch(0x201n, 0x21fn), []],
  ])('leaves out what is applied: %s', async (_, given, expected) => {
    const database = await suite.database();
    const table = await connectedTable(database);
    await table.advance(pooled(database), transaction(0x200n, 0x220n));
    await table.load();
    const client = await database.connect();
    await client.query('BEGIN');
    const left = await table.advance(through(client), given);
    await client.query('COMMIT');
    expect(left).toEqual(
      given.filter(({ commitLsn }) => expected.includes(commitLsn)),
    );
    const last = expected.at(-1);
    expect(table.advancedTo).toBe(last ?? null);
    expect(await table.load()).toMatchObject(
      last === undefined
        ? { commitLsn: 0x200n, confirmedLsn: 0x220n }
        : { commitLsn: last, confirmedLsn: last + 0x20n },
    );
  });

  it('goes by a boundary without a transaction', async () => {
    const database = await suite.database();
    const table = await connectedTable(database);
    await table.confirm(0x300n);
    const client = await database.connect();
    await client.query('BEGIN');
    const given = batch(0x2e0n, 0x300n);
    expect(await table.advance(through(client), given)).toEqual(given.slice(1));
    await client.query('COMMIT');
  });

  it('goes by the commit alone where no end is known', async () => {
    const database = await suite.database();
    const table = await connectedTable(database);
    const given = [transaction(0x100n, null), transaction(0x101n, null)];
    expect(await table.advance(pooled(database), given)).toEqual(given);
    expect(await table.load()).toMatchObject({
      commitLsn: 0x101n,
      confirmedLsn: null,
    });
    expect(await table.advance(pooled(database), given)).toEqual([]);
  });

  it('is undone with the transaction it runs in', async () => {
    const database = await suite.database();
    const table = await connectedTable(database);
    await table.advance(pooled(database), transaction(0x100n, 0x120n));
    const stored = await table.load();
    const client = await database.connect();
    await client.query('BEGIN');
    expect(
      await table.advance(through(client), batch(0x100n, 0x120n)),
    ).toHaveLength(1);
    await client.query('ROLLBACK');
    expect(await table.load()).toEqual(stored);
  });

  it('throws when the row belongs to another server, or to a later timeline', async () => {
    const database = await suite.database();
    const foreign = await connectedTable(database, { source: OTHER_SOURCE });
    await foreign.advance(pooled(database), transaction(0x100n, 0x120n));
    const promoted = await connectedTable(database, {
      slotName: 'promoted',
      source: { ...SOURCE, timeline: 2 },
    });
    await promoted.advance(
      pooled(database),
      transaction(0x100n, 0x120n, 'promoted'),
    );
    const rows = await database.query('SELECT * FROM replicant_checkpoints');
    for (const slotName of ['orders', 'promoted']) {
      const table = await connectedTable(database, { slotName });
      for (const lsn of [0x10n, 0x300n]) {
        await expect(
          table.advance(pooled(database), [
            transaction(lsn, lsn + 1n, slotName),
            transaction(0x400n, 0x420n, slotName),
          ]),
        ).rejects.toThrow(CheckpointIdentityError);
      }
      expect(table.advancedTo).toBeNull();
    }
    expect(await database.query('SELECT * FROM replicant_checkpoints')).toEqual(
      rows,
    );
  });
});

describe('of two writers with overlapping batches', () => {
  const FIRST = batch(0x100n, 0x120n);
  const SECOND = batch(0x120n, 0x140n);

  describe.each([{ row: 'the first row' }, { row: 'a later row' }])(
    'at $row',
    ({ row }) => {
      it.each([
        ['READ COMMITTED', 'COMMIT', [0x140n]],
        ['REPEATABLE READ', 'COMMIT', '40001'],
        ['READ COMMITTED', 'ROLLBACK', [0x120n, 0x140n]],
        ['REPEATABLE READ', 'ROLLBACK', [0x120n, 0x140n]],
      ])(
        'the second waits under %s for the %s, and gets what is left by then',
        async (isolation, end, expected) => {
          const database = await suite.database();
          const table = await connectedTable(database);
          const rival = await connectedTable(database);
          if (row === 'a later row')
            await table.advance(pooled(database), transaction(0x10n, 0x20n));
          const first = await begun(database, isolation);
          const second = await begun(database, isolation);

          expect(await table.advance(through(first), FIRST)).toEqual(FIRST);
          const outcome = rival.advance(through(second), SECOND).then(
            (left) => left.map(({ commitLsn }) => commitLsn),
            (error: unknown) =>
              error instanceof Error && 'code' in error ? error.code : error,
          );
          await untilBlocked(database);
          await first.query(end);

          expect(await outcome).toEqual(expected);
          // After the serialization error this is a ROLLBACK.
          await second.query('COMMIT');
          expect(await table.load()).toMatchObject(
            expected === '40001'
              ? { commitLsn: 0x120n, confirmedLsn: 0x140n }
              : { commitLsn: 0x140n, confirmedLsn: 0x160n },
          );
        },
      );
    },
  );

  it('each of 200 is applied once when four race for them in batches of their own', async () => {
    const database = await suite.database();
    await database.query('CREATE TABLE applied (commit_lsn bigint)');
    const all = Array.from({ length: 200 }, (_, number) => {
      const lsn = BigInt(number + 1) * 0x100n;
      return transaction(lsn, lsn + 0x100n);
    });
    await Promise.all(
      [3, 4, 5, 7].map(async (size) => {
        const client = await database.connect();
        const query = through(client);
        const table = await connectedTable(database, { query });
        for (let from = 0; from < all.length; from += size) {
          await client.query('BEGIN');
          const left = await table.advance(query, all.slice(from, from + size));
          for (const { commitLsn } of left)
            await client.query('INSERT INTO applied VALUES ($1)', [commitLsn]);
          await client.query('COMMIT');
        }
      }),
    );
    expect(
      await database.query(
        'SELECT count(*)::int AS times, count(DISTINCT commit_lsn)::int AS transactions FROM applied',
      ),
    ).toEqual([{ times: 200, transactions: 200 }]);
  });
});
