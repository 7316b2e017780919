import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  connectedTable,
  pooled,
  through,
  transaction,
  untilBlocked,
} from './support/checkpoint-tables.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';

const suite = useServer();

const TX = { commitLsn: 0x100n, commitEndLsn: 0x120n };
const TX_STORED = { commitLsn: TX.commitLsn, confirmedLsn: TX.commitEndLsn };

/** What the second of two writers gets after the first has ended. */
const OUTCOMES = [
  { isolation: 'READ COMMITTED', end: 'COMMIT', expected: 'applied before' },
  { isolation: 'REPEATABLE READ', end: 'COMMIT', expected: '40001' },
  { isolation: 'SERIALIZABLE', end: 'COMMIT', expected: '40001' },
  { isolation: 'READ COMMITTED', end: 'ROLLBACK', expected: 'new' },
  { isolation: 'REPEATABLE READ', end: 'ROLLBACK', expected: 'new' },
  { isolation: 'SERIALIZABLE', end: 'ROLLBACK', expected: 'new' },
];

describe('of two writers with the same transaction', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await suite.server.createDatabase();
  });
  afterAll(() => database.close());

  describe.each([{ row: 'the first row' }, { row: 'a later row' }])(
    'at $row',
    ({ row }) => {
      it.each(OUTCOMES)(
        'the second waits under $isolation for the $end and gets: $expected',
        async ({ isolation, end, expected }) => {
          const slotName = `${row}_${isolation}_${end}`
            .toLowerCase()
            .replaceAll(' ', '_');
          const tx = { slotName, ...TX };
          const first = await database.connect();
          const second = await database.connect();
          const table = await connectedTable(database, { slotName });
          const rival = await connectedTable(database, { slotName });
          if (row === 'a later row') {
            const earlier = transaction(0x10n, 0x20n, slotName);
            await table.advance(pooled(database), earlier);
          }
          for (const client of [first, second]) {
            // The first query takes the snapshot, which must be older than the other writer's commit.
            await client.query(`BEGIN ISOLATION LEVEL ${isolation}`);
            await client.query('SELECT FROM replicant_checkpoints');
          }

          expect(await table.advance(through(first), tx)).toBe(true);
          let settled = false;
          const outcome = rival
            .advance(through(second), tx)
            .then(
              (isNew) => (isNew ? 'new' : 'applied before'),
              (error: unknown) => sqlState(error),
            )
            .finally(() => {
              settled = true;
            });
          await untilBlocked(database);
          expect(settled).toBe(false);
          await first.query(end);

          expect(await outcome).toBe(expected);
          // After the serialization error this is a ROLLBACK.
          await second.query('COMMIT');
          expect(await table.load()).toMatchObject(TX_STORED);
        },
      );
    },
  );

  it('each of 200 is applied once when four race for them', async () => {
    await database.query('CREATE TABLE applied (commit_lsn bigint)');
    await Promise.all(
      [1, 2, 3, 4].map(async () => {
        const client = await database.connect();
        const query = through(client);
        const table = await connectedTable(database, { query });
        for (let number = 1n; number <= 200n; number++) {
          const commitLsn = number * 0x100n;
          const tx = transaction(commitLsn, commitLsn + 0x100n);
          await client.query('BEGIN');
          if (await table.advance(query, tx)) {
            await client.query('INSERT INTO applied VALUES ($1)', [commitLsn]);
          }
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

function sqlState(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : error;
}
