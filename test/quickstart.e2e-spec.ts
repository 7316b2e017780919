import { describe, expect, it } from 'vitest';
import {
  compare,
  countApplied,
  countCopied,
} from '../sample/01-quickstart/comparison.js';
import {
  SOURCE_SCHEMA,
  TARGET_SCHEMA,
} from '../sample/01-quickstart/schema.js';
import { describeSnapshot } from '../sample/01-quickstart/snapshot-bar.js';
import { fillShop } from '../sample/01-quickstart/writer/existing-rows.js';
import { Writer } from '../sample/01-quickstart/writer/writer.js';
import type { SnapshotStatus } from '../lib/engine/telemetry/snapshot-status.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';

const TRANSACTIONS = 600;

describe('the proof of the quickstart', () => {
  const suite = useServer();

  async function written(seed: number, existing = 0): Promise<TestDatabase> {
    const database = await suite.database('shop');
    await database.query(SOURCE_SCHEMA);
    if (existing > 0) await database.query(fillShop(existing));
    await database.query(
      `SELECT pg_create_logical_replication_slot('of_' || current_database(), 'test_decoding')`,
    );
    const { connection } = database;
    const writer = new Writer({
      connection,
      seed,
      existing,
      pace: async () => {},
    });
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

  it('changes rows that were there before, of which some are large', async () => {
    const rows = 10_000;
    const before = await suite.database('shop');
    await before.query(SOURCE_SCHEMA);
    await before.query(fillShop(rows));
    const [sizes] = await before.query<{ rows: number; large: number }>(
      `SELECT ((SELECT count(*) FROM customers) + (SELECT count(*) FROM orders) + (SELECT count(*) FROM order_lines))::int AS rows,
        (pg_table_size((SELECT reltoastrelid FROM pg_class WHERE oid = 'orders'::regclass)) / 8192)::int AS large`,
    );
    expect(sizes?.rows).toBe(rows);
    expect(sizes?.large).toBeGreaterThan(10);
    const difference = await compare(before, await written(7, rows));
    expect(difference.compared).toBeGreaterThan(rows / 2);
    for (const kind of ['missing', 'extra', 'different'] as const)
      expect(difference[kind], kind).toBeGreaterThan(100);
    const { compared, ...faults } = await compare(
      await written(7, rows),
      await written(7, rows),
    );
    expect(compared).toBeGreaterThan(0);
    expect(faults).toEqual({ missing: 0, extra: 0, different: 0 });
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
    await target.query(
      `INSERT INTO copied VALUES ('public.orders', '{"[1]","[2]"}'), ('public.customers', '{"[1]"}'), ('public.orders', '{"[2]","[3]"}')`,
    );
    expect(await countCopied(target)).toEqual({ copied: 4, repeated: 1 });
  });
});

describe('the progress bar of the quickstart', () => {
  const snapshot: SnapshotStatus = {
    mode: 'initial',
    state: 'copying',
    tablesDone: 1,
    tablesTotal: 3,
    tables: ['public.orders'],
    rows: 50_000,
    estimatedRows: 100_000,
    rowsPerSecond: 10_000,
    secondsRemaining: 5,
    startedAt: '2026-01-02T03:04:05.000Z',
  };

  it.each<[string, Partial<SnapshotStatus>, string]>([
    [
      'half way',
      {},
      '[############            ]  50 %   1 of 3 tables   50,000 of 100,000 rows (10,000/s)   5 s left',
    ],
    [
      'without statistics',
      { estimatedRows: null, secondsRemaining: null },
      '[                        ]   ? %   1 of 3 tables   50,000 of ? rows (10,000/s)',
    ],
    [
      'at an estimate that is overtaken',
      { rows: 100_000, secondsRemaining: null },
      '[####################### ]  99 %   1 of 3 tables   100,000 of 100,000 rows (10,000/s)',
    ],
    [
      'at its end',
      { state: 'complete', tablesDone: 3, rows: 99_000, secondsRemaining: 0 },
      '[########################] 100 %   3 of 3 tables   99,000 of 100,000 rows (10,000/s)   0 s left',
    ],
    [
      'with nothing to copy',
      { rows: 0, estimatedRows: 0, rowsPerSecond: 0, secondsRemaining: null },
      '[                        ]   0 %   1 of 3 tables   0 of 0 rows (0/s)',
    ],
  ])('is %s', (_, part, line) => {
    expect(describeSnapshot({ ...snapshot, ...part })).toBe(line);
  });
});
