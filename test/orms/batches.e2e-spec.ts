import type { Transaction } from 'nestjs-replicant';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { useServer } from '../support/suite.js';
import type { TestDatabase } from '../support/test-database.js';
import {
  BATCH_WIRINGS,
  type BatchWiring,
  CONTEXT,
  type WiredSink,
} from './libraries.js';
import {
  insert,
  inserted,
  made,
  remove,
  truncate,
  update,
} from './made-transactions.js';
import { blockOf, read } from './shown.js';
import type { Shop } from './wiring/shop.js';

type BatchSink = WiredSink<readonly Transaction<Shop>[]>;

const LIBRARIES = Object.keys(BATCH_WIRINGS);

it.each(['portions', ...LIBRARIES.map((library) => `${library}-batch`)])(
  'docs/delivery.md shows the file %s as it is tested here',
  (name) => {
    expect(read('../../docs/delivery.md')).toContain(blockOf(name));
  },
);

const suite = useServer();

describe.each(LIBRARIES)('batches over %s', (library) => {
  let database: TestDatabase;
  let wiring: BatchWiring;
  let sink: BatchSink;

  beforeAll(async () => {
    database = await suite.server.createDatabase(library);
    await database.query(
      'CREATE TABLE orders (id integer PRIMARY KEY, total integer NOT NULL CHECK (total >= 0))',
    );
    const open = BATCH_WIRINGS[library];
    if (open === undefined) throw new Error(`no wiring for ${library}`);
    wiring = await open(database.url);
  });

  beforeEach(async () => {
    await database.query(
      'DROP TABLE IF EXISTS replicant_checkpoints; TRUNCATE orders',
    );
    sink = wiring.createBatch();
    sink.checkpoints.identify(CONTEXT);
    await sink.checkpoints.load();
  });

  afterAll(async () => {
    await wiring.close();
    await database.close();
  });

  const orders = (): Promise<unknown[]> =>
    database.query('SELECT id, total FROM orders ORDER BY id');

  it('leaves what the last change of each row says', async () => {
    await sink.apply([
      inserted(0x10n, { id: 1, total: 10 }, { id: 2, total: 20 }),
      made(0x30n, update({ id: 1, total: 11 }), remove(2)),
      made(0x50n, insert({ id: 2, total: 21 }), insert({ id: 3, total: 30 })),
    ]);
    expect(await orders()).toEqual([
      { id: 1, total: 11 },
      { id: 2, total: 21 },
      { id: 3, total: 30 },
    ]);
    await sink.apply([
      made(
        0x70n,
        update({ id: 4, total: 12 }, 1),
        update({ id: 2, total: 22 }),
      ),
      made(0x90n, remove(3)),
    ]);
    expect(await orders()).toEqual([
      { id: 2, total: 22 },
      { id: 4, total: 12 },
    ]);
    await sink.apply([
      made(0xb0n, insert({ id: 5, total: 50 })),
      made(0xd0n, truncate(), insert({ id: 6, total: 60 })),
    ]);
    expect(await orders()).toEqual([{ id: 6, total: 60 }]);
    await sink.apply([made(0xf0n, truncate())]);
    expect(await orders()).toEqual([]);
  });

  it('leaves out what was applied, however the batch is cut', async () => {
    const first = inserted(0x10n, { id: 1, total: 10 });
    const second = inserted(0x30n, { id: 2, total: 20 });
    await sink.apply([first, second]);
    expect(sink.checkpoints.advancedTo).toBe(0x30n);
    await sink.apply([
      inserted(0x30n, { id: 2, total: 99 }),
      inserted(0x50n, { id: 3, total: 30 }),
    ]);
    await sink.apply([first, second]);
    expect(await orders()).toEqual([
      { id: 1, total: 10 },
      { id: 2, total: 20 },
      { id: 3, total: 30 },
    ]);
  });

  it('leaves nothing of a batch of which one row fails', async () => {
    await expect(
      sink.apply([
        inserted(0x10n, { id: 1, total: 10 }),
        inserted(0x30n, { id: 2, total: -1 }),
      ]),
    ).rejects.toThrow();
    expect(await orders()).toEqual([]);
    expect(await sink.checkpoints.load()).toBeNull();
  });

  it('writes many rows in portions', async () => {
    const rows = Array.from({ length: 2_500 }, (_, id) => ({ id, total: id }));
    await sink.apply([inserted(0x10n, ...rows)]);
    expect(await orders()).toEqual(rows);
  });

  it('applies a batch once when two processes have it', async () => {
    const rival = wiring.createBatch();
    rival.checkpoints.identify(CONTEXT);
    await rival.checkpoints.load();
    const batch = (total: number): Transaction<Shop>[] => [
      inserted(0x10n, { id: total, total }),
      inserted(0x30n, { id: total + 1, total }),
    ];
    await Promise.all([sink.apply(batch(10)), rival.apply(batch(20))]);
    expect(await orders()).toHaveLength(2);
  });
});
