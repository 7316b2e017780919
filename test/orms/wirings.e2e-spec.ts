import type { Transaction } from 'nestjs-replicant';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { useServer } from '../support/suite.js';
import type { TestDatabase } from '../support/test-database.js';
import {
  CONTEXT,
  SOURCE,
  type WiredSink,
  type Wiring,
  WIRINGS,
} from './libraries.js';
import { inserted } from './made-transactions.js';
import { blockOf, read } from './shown.js';
import type { Shop } from './wiring/shop.js';

it.each(Object.keys(WIRINGS))(
  'docs/checkpoints.md shows the wiring of %s as it is tested here',
  (library) => {
    expect(read('../../docs/checkpoints.md')).toContain(blockOf(library));
  },
);

const suite = useServer();

describe.each(Object.keys(WIRINGS))('CheckpointTable over %s', (library) => {
  let database: TestDatabase;
  let wiring: Wiring;
  let sink: WiredSink<Transaction<Shop>>;

  beforeAll(async () => {
    database = await suite.server.createDatabase(library);
    await database.query(
      'CREATE TABLE orders (id integer PRIMARY KEY, total integer NOT NULL CHECK (total >= 0))',
    );
    const open = WIRINGS[library];
    if (open === undefined) throw new Error(`no wiring for ${library}`);
    wiring = await open(database.url);
  });

  beforeEach(async () => {
    await database.query(
      'DROP TABLE IF EXISTS replicant_checkpoints; TRUNCATE orders',
    );
    sink = wiring.create();
    sink.checkpoints.identify(CONTEXT);
  });

  afterAll(async () => {
    await wiring.close();
    await database.close();
  });

  const orders = (): Promise<unknown[]> =>
    database.query('SELECT id, total FROM orders ORDER BY id');

  it('applies a transaction once', async () => {
    expect(await sink.checkpoints.load()).toBeNull();
    await sink.apply(inserted(0x1_0000_0010n, { id: 1, total: 10 }));
    expect(sink.checkpoints.advancedTo).toBe(0x1_0000_0010n);
    expect(await orders()).toEqual([{ id: 1, total: 10 }]);
    expect(await sink.checkpoints.load()).toEqual({
      commitLsn: 0x1_0000_0010n,
      confirmedLsn: 0x1_0000_0020n,
      relations: null,
      progress: null,
      ...SOURCE,
    });

    await sink.apply(inserted(0x1_0000_0010n, { id: 1, total: 99 }));
    expect(sink.checkpoints.advancedTo).toBeNull();
    expect(await orders()).toEqual([{ id: 1, total: 10 }]);

    await sink.apply(inserted(0x1_0000_0020n, { id: 1, total: 20 }));
    expect(await orders()).toEqual([{ id: 1, total: 20 }]);
  });

  it('stores the shapes of tables with the transaction, and leaves them alone without any', async () => {
    await sink.checkpoints.load();
    const shape = { '16384': '[0,"öffentlich \\"",[]]' };
    sink.checkpoints.keepRelations(JSON.stringify(shape));
    await sink.apply(inserted(0x10n, { id: 1, total: 10 }));
    sink.checkpoints.keepRelations(null);
    await sink.apply(inserted(0x20n, { id: 2, total: 20 }));
    const stored = await sink.checkpoints.load();
    expect(JSON.parse(stored?.relations ?? 'null')).toEqual(shape);
    sink.checkpoints.keepRelations('{"16384": null}');
    await sink.checkpoints.confirm(0x200n);
    expect(await sink.checkpoints.load()).toMatchObject({ relations: '{}' });
  });

  it('leaves rows and checkpoint together when a transaction fails', async () => {
    await sink.checkpoints.load();
    await sink.apply(inserted(0x10n, { id: 1, total: 10 }));
    const failing = inserted(0x20n, { id: 2, total: 20 }, { id: 3, total: -1 });
    await expect(sink.apply(failing)).rejects.toThrow();
    expect(await orders()).toEqual([{ id: 1, total: 10 }]);
    expect(await sink.checkpoints.load()).toMatchObject({ commitLsn: 0x10n });

    await sink.apply(inserted(0x20n, { id: 2, total: 20 }));
    expect(await orders()).toEqual([
      { id: 1, total: 10 },
      { id: 2, total: 20 },
    ]);
  });

  it('applies a transaction once when two processes have it', async () => {
    const rival = wiring.create();
    rival.checkpoints.identify(CONTEXT);
    await Promise.all([sink.checkpoints.load(), rival.checkpoints.load()]);
    await Promise.all([
      sink.apply(inserted(0x10n, { id: 1, total: 10 })),
      rival.apply(inserted(0x10n, { id: 2, total: 10 })),
    ]);
    expect(await orders()).toHaveLength(1);
  });

  it('confirms a boundary and never takes it back', async () => {
    await sink.checkpoints.load();
    await sink.checkpoints.confirm(0x200n);
    await sink.checkpoints.confirm(0x100n);
    expect(await sink.checkpoints.load()).toMatchObject({
      commitLsn: null,
      confirmedLsn: 0x200n,
    });
  });

  it('stores the progress of a snapshot, in a table of an earlier version too', async () => {
    await sink.checkpoints.load();
    await database.query(
      'ALTER TABLE replicant_checkpoints DROP COLUMN snapshot_progress',
    );
    expect(await sink.checkpoints.load()).toBeNull();
    await sink.checkpoints.prepareProgress();
    await sink.checkpoints.storeProgress('{"bound":["é","\\u0000","$1"]}');
    await sink.apply(inserted(0x10n, { id: 1, total: 10 }));
    await sink.checkpoints.storeProgress('two');
    expect(await sink.checkpoints.load()).toMatchObject({
      commitLsn: 0x10n,
      progress: 'two',
    });
  });

  it('survives that others create the table at the same moment', async () => {
    for (let round = 0; round < 5; round++) {
      const sinks = Array.from({ length: 5 }, () => wiring.create());
      for (const { checkpoints } of sinks) checkpoints.identify(CONTEXT);
      const loaded = await Promise.all(
        sinks.map(({ checkpoints }) => checkpoints.load()),
      );
      expect(loaded).toEqual([null, null, null, null, null]);
      await database.query('DROP TABLE replicant_checkpoints');
    }
  });

  it('refuses a row of another server', async () => {
    await sink.checkpoints.load();
    await sink.checkpoints.confirm(0x10n);
    await database.query(
      `UPDATE replicant_checkpoints SET system_identifier = '1'`,
    );
    await expect(
      sink.apply(inserted(0x100n, { id: 1, total: 10 })),
    ).rejects.toThrow(/belongs to another PostgreSQL server/);
    expect(await orders()).toEqual([]);
  });

  it('knows where its table is', async () => {
    await sink.checkpoints.load();
    const [table] = await database.query<{ oid: number }>(
      `SELECT 'replicant_checkpoints'::regclass::oid AS oid`,
    );
    expect(await sink.checkpoints.home()).toMatchObject({
      database: database.name,
      relationOid: table?.oid,
    });
  });
});
