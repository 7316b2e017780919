import { describe, expect, it } from 'vitest';
import { compare, countApplied } from '../sample/01-quickstart/comparison.js';
import {
  SOURCE_SCHEMA,
  TARGET_SCHEMA,
} from '../sample/01-quickstart/schema.js';
import { Writer } from '../sample/01-quickstart/writer/writer.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';

const TRANSACTIONS = 600;

describe('the proof of the quickstart', () => {
  const suite = useServer();

  async function written(seed: number): Promise<TestDatabase> {
    const database = await suite.database('shop');
    await database.query(SOURCE_SCHEMA);
    await database.query(
      `SELECT pg_create_logical_replication_slot('of_' || current_database(), 'test_decoding')`,
    );
    const { connection } = database;
    const writer = new Writer({ connection, seed, pace: async () => {} });
    await writer.write(TRANSACTIONS);
    expect(writer.committed).toBe(TRANSACTIONS);
    expect(writer.rolledBack).toBeGreaterThan(0);
    return database;
  }

  it('writes the same for the same seed', async () => {
    const [one, same] = await Promise.all([written(7), written(7)]);
    const { compared, ...faults } = await compare(one, same);
    expect(faults).toEqual({ missing: 0, extra: 0, different: 0 });
    expect(compared).toBeGreaterThan(200);
    const other = await compare(one, await written(8));
    expect(other.different).toBeGreaterThan(0);
  }, 60_000);

  it('writes every kind of change that a copy must get right', async () => {
    const database = await written(7);
    const changes = await database.query<{ data: string }>(
      `SELECT data FROM pg_logical_slot_get_changes('of_' || current_database(), NULL, NULL, 'include-xids', 'off')`,
    );
    const count = (pattern: RegExp) =>
      changes.filter(({ data }) => pattern.test(data)).length;
    expect(count(/^COMMIT/)).toBe(TRANSACTIONS);
    for (const kind of [
      /^table public\.\w+: INSERT/,
      /^table public\.\w+: DELETE/,
      /UPDATE: .*unchanged-toast-datum/,
      /orders: UPDATE: old-key: .*unchanged-toast-datum/,
      /order_lines: UPDATE: old-key:/,
      /customers: UPDATE: old-key:/,
    ]) {
      expect(count(kind), String(kind)).toBeGreaterThan(5);
    }
    expect(count(/: TRUNCATE:/)).toBe(1);
  }, 60_000);

  it('tells each kind of fault', async () => {
    const source = await suite.database('shop');
    const target = await suite.database('shop');
    await source.query(TARGET_SCHEMA);
    await target.query(TARGET_SCHEMA);
    for (const database of [source, target]) {
      await database.query(
        `INSERT INTO customers SELECT n, 'name', 'profile' FROM generate_series(1, 6) AS n`,
      );
    }
    await target.query('DELETE FROM customers WHERE id <= 3');
    await source.query('DELETE FROM customers WHERE id = 6');
    await target.query('UPDATE customers SET profile = NULL WHERE id = 4');
    await target.query(
      `INSERT INTO ledger (commit_lsn, changes, committed_at)
       SELECT lsn::pg_lsn, 1, now() FROM unnest(ARRAY['0/1', '0/2', '0/2', '0/3', '0/3']) AS lsn`,
    );
    expect(await compare(source, target)).toEqual({
      compared: 2,
      missing: 3,
      extra: 1,
      different: 1,
    });
    expect(await countApplied(target)).toEqual({ applied: 3, appliedTwice: 2 });
  });
});
