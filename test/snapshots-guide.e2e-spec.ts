import { readFile } from 'node:fs/promises';
import {
  type Change,
  CheckpointMovedError,
  formatLsn,
  type SnapshotContext,
  type SnapshotRow,
  type Transaction,
} from 'nestjs-replicant';
import { Pool } from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { codeBlocks } from '../tools/markdown.mjs';
import { Balances, Documents } from './guide/own-position.sink.js';
import { ProductSearch, SearchIndex } from './guide/search.sink.js';
import { ShopCopy } from './guide/shop.sink.js';
import { OrderCopy } from './guide/snapshot.sink.js';
import { SOURCE } from './support/checkpoint-tables.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';

it.each(['snapshot', 'shop', 'own-position', 'search'])(
  'docs/snapshots.md shows the sink of %s as it is tested here',
  async (name) => {
    const sink = await readFile(`test/guide/${name}.sink.ts`, 'utf8');
    const guide = await readFile('docs/snapshots.md', 'utf8');
    expect(codeBlocks(guide, 'ts').map(({ code }) => code)).toContain(sink);
  },
);

const CONTEXT: SnapshotContext = {
  pipeline: 'default',
  slotName: 'orders',
  mode: 'incremental',
  relation: 'public.t',
  snapshotLsn: 1n,
  firstForTable: false,
  complete: false,
  progress: null,
};

const CLEARING = { ...CONTEXT, firstForTable: true };

/** What rows and changes of a table share. */
function of<K extends string>(relation: K) {
  const [schema = '', table = ''] = relation.split('.');
  return { relation, schema, table, columns: [] } as const;
}

function transaction<T>(
  commitLsn: bigint,
  ...changes: readonly Change<T>[]
): Transaction<T> {
  return {
    pipeline: 'default',
    slotName: 'orders',
    xid: 7,
    commitLsn,
    commitEndLsn: commitLsn + 8n,
    commitTime: new Date(0),
    commitTimeMicros: 0n,
    changes,
    messages: [],
  };
}

describe('the sink with a CheckpointTable', () => {
  const suite = useServer();
  const ORDERS = of('public.orders');
  const CHANGE = { ...ORDERS, ordinal: 0, commitLsn: 1n } as const;
  type Order = { id: number; total: number; note: string | null };
  type Shop = { 'public.orders': Order };

  function whole(...records: Order[]): SnapshotRow<Shop>[] {
    return records.map((record) => ({
      ...ORDERS,
      op: 'snapshot',
      record,
      unchanged: [],
    }));
  }

  /** A sink as the first connect leaves it. */
  async function connected(target: TestDatabase): Promise<OrderCopy> {
    const pool = new Pool({ ...target.connection, max: 2 });
    onTestFinished(() => pool.end());
    const sink = new OrderCopy(pool);
    sink.checkpoints.identify({
      pipeline: 'default',
      slotName: 'orders',
      ...SOURCE,
    });
    await sink.checkpoints.load();
    return sink;
  }

  async function withOrders(): Promise<TestDatabase> {
    const target = await suite.database();
    await target.query(
      'create table orders(id int primary key, total int not null, note text)',
    );
    return target;
  }

  function orders(target: TestDatabase): Promise<unknown[]> {
    return target.query('select * from orders order by id');
  }

  it('clears, writes rows, and is as good when they come again', async () => {
    const target = await withOrders();
    await target.query(`insert into orders values (9, 9, 'left from before')`);
    const sink = await connected(target);
    const rows = whole(
      { id: 1, total: 10, note: null },
      { id: 2, total: 20, note: 'n' },
    );
    for (const mode of ['initial', 'initial', 'incremental'] as const) {
      await sink.copy(rows, { ...CLEARING, mode });
      await sink.copy(whole({ id: 3, total: 30, note: 'm' }), CONTEXT);
      await sink.copy([], { ...CONTEXT, relation: '', complete: true });
      expect(await orders(target)).toEqual([
        { id: 1, total: 10, note: null },
        { id: 2, total: 20, note: 'n' },
        { id: 3, total: 30, note: 'm' },
      ]);
    }
  });

  it('takes changes of rows that are not copied yet, and has them filled in', async () => {
    const target = await withOrders();
    const sink = await connected(target);
    await sink.copy([], { ...CLEARING, progress: 'cleared' });
    await sink.apply(
      transaction<Shop>(
        0x100n,
        {
          ...CHANGE,
          op: 'update',
          record: { id: 1, total: 11 },
          unchanged: ['note'],
          old: null,
        },
        {
          ...CHANGE,
          op: 'update',
          record: { id: 5, total: 50 },
          unchanged: ['note'],
          old: { kind: 'key', record: { id: 4 } },
        },
        {
          ...CHANGE,
          op: 'delete',
          old: { kind: 'key', record: { id: 2 } },
        },
      ),
    );
    expect(await orders(target)).toEqual([
      { id: 1, total: 11, note: null },
      { id: 5, total: 50, note: null },
    ]);
    await sink.copy(
      [
        ...whole({ id: 3, total: 30, note: 'three' }),
        ...[1, 5].map((id): SnapshotRow<Shop> => ({
          ...ORDERS,
          op: 'snapshot',
          record: { id, note: `large ${id}` },
          unchanged: ['total'],
        })),
      ],
      { ...CONTEXT, progress: 'one' },
    );
    // A row that is there keeps what the stream does not bring, whatever becomes of its key.
    await sink.apply(
      transaction<Shop>(0x200n, {
        ...CHANGE,
        op: 'update',
        record: { id: 6, total: 51 },
        unchanged: ['note'],
        old: { kind: 'key', record: { id: 5 } },
      }),
    );
    expect(await orders(target)).toEqual([
      { id: 1, total: 11, note: 'large 1' },
      { id: 3, total: 30, note: 'three' },
      { id: 6, total: 51, note: 'large 5' },
    ]);
    expect(await sink.checkpoints.load()).toMatchObject({
      commitLsn: 0x200n,
      progress: 'one',
    });
  });

  it('rolls back the rows of a process that was cut off', async () => {
    const target = await withOrders();
    const stale = await connected(target);
    const sink = await connected(target);
    await sink.apply(
      transaction<Shop>(0x100n, {
        ...CHANGE,
        op: 'insert',
        record: { id: 1, total: 11, note: 'new' },
      }),
    );
    await expect(
      stale.copy(whole({ id: 1, total: 10, note: 'old' }), {
        ...CONTEXT,
        progress: 'one',
      }),
    ).rejects.toBeInstanceOf(CheckpointMovedError);
    expect(await orders(target)).toEqual([{ id: 1, total: 11, note: 'new' }]);
  });
});

describe('the sink of several tables', () => {
  const suite = useServer();
  const CUSTOMERS = of('public.customers');
  const ORDERS = of('public.orders');
  type Shop = {
    'public.customers': { id: number; name: string | null };
    'public.orders': { id: number; customer: number; note: string | null };
  };

  async function connected() {
    const target = await suite.database();
    await target.query(
      `create table customers(id int primary key, name text); insert into customers values (9, 'left from before');
       create table orders(id int primary key, customer int not null, note text); insert into orders values (9, 9, 'left')`,
    );
    const pool = new Pool({ ...target.connection, max: 2 });
    onTestFinished(() => pool.end());
    const sink = new ShopCopy(pool);
    sink.checkpoints.identify({
      pipeline: 'default',
      slotName: 'orders',
      ...SOURCE,
    });
    await sink.checkpoints.load();
    const all = async () => ({
      customers: await target.query('select * from customers order by id'),
      orders: await target.query('select * from orders order by id'),
    });
    return { sink, all };
  }

  function customer(id: number, name: string): SnapshotRow<Shop> {
    const record = { id, name };
    return { ...CUSTOMERS, op: 'snapshot', record, unchanged: [] };
  }

  it('clears and writes the table that a call is about', async () => {
    const { sink, all } = await connected();
    const at = (relation: string) => ({ ...CLEARING, relation });
    await sink.copy([], at('public.customers'));
    expect((await all()).customers).toEqual([]);
    expect((await all()).orders).toHaveLength(1);
    await sink.copy([], at('public.orders'));
    await sink.apply(
      transaction<Shop>(
        0x100n,
        {
          ...ORDERS,
          ordinal: 0,
          commitLsn: 0x100n,
          op: 'update',
          record: { id: 1, customer: 2 },
          unchanged: ['note'],
          old: null,
        },
        {
          ...CUSTOMERS,
          ordinal: 1,
          commitLsn: 0x100n,
          op: 'delete',
          old: { kind: 'key', record: { id: 3 } },
        },
      ),
    );
    for (const _ of ['once', 'again']) {
      await sink.copy([customer(1, 'one'), customer(2, 'two')], {
        ...CONTEXT,
        relation: 'public.customers',
      });
      await sink.copy(
        [
          {
            ...ORDERS,
            op: 'snapshot',
            record: { id: 1, note: 'large' },
            unchanged: ['customer'],
          },
        ],
        { ...CONTEXT, relation: 'public.orders' },
      );
    }
    await sink.copy([], { ...CONTEXT, relation: '', complete: true });
    expect(await all()).toEqual({
      customers: [
        { id: 1, name: 'one' },
        { id: 2, name: 'two' },
      ],
      orders: [{ id: 1, customer: 2, note: 'large' }],
    });
    await sink.apply(
      transaction<Shop>(0x200n, {
        ...CUSTOMERS,
        ordinal: 0,
        commitLsn: 0x200n,
        op: 'update',
        record: { id: 7, name: 'one' },
        unchanged: [],
        old: { kind: 'key', record: { id: 1 } },
      }),
    );
    expect((await all()).customers).toEqual([
      { id: 2, name: 'two' },
      { id: 7, name: 'one' },
    ]);
  });

  it('refuses rows of a table that it does not know', async () => {
    const { sink } = await connected();
    await expect(
      sink.copy([], { ...CLEARING, relation: 'public.orders.old' }),
    ).rejects.toThrow('A table has no mirror.');
  });
});

describe('the sink with a checkpoint of its own', () => {
  const ACCOUNTS = of('public.accounts');
  const CHANGE = { ...ACCOUNTS, ordinal: 0, commitLsn: 1n } as const;
  type Bank = { 'public.accounts': { id: number; balance: string } };

  class Memory extends Documents {
    readonly all = new Map<string, unknown>();

    async get(key: string): Promise<unknown> {
      return this.all.get(key);
    }

    async write(
      documents: ReadonlyMap<string, unknown>,
      removed: readonly string[] = [],
    ): Promise<void> {
      for (const key of removed) this.all.delete(key);
      for (const [key, document] of documents) this.all.set(key, document);
    }

    async removeAll(prefix: string): Promise<void> {
      for (const key of this.all.keys())
        if (key.startsWith(prefix)) this.all.delete(key);
    }
  }

  it('begins where the snapshot ends', async () => {
    const documents = new Memory();
    documents.all.set('account 9', 'left from before');
    const sink = new Balances(documents);
    expect(await sink.position()).toBeNull();
    await sink.copy(
      [1, 2].map((id): SnapshotRow<Bank> => ({
        ...ACCOUNTS,
        op: 'snapshot',
        record: { id, balance: '10.00' },
        unchanged: [],
      })),
      { ...CLEARING, mode: 'initial' },
    );
    expect(await sink.position()).toBeNull();
    await sink.copied({
      pipeline: 'default',
      slotName: 'orders',
      commitLsn: 0xffn,
      commitEndLsn: 0x100n,
    });
    expect(await sink.position()).toBe(0xffn);
    await sink.apply(
      transaction<Bank>(
        0x100n,
        {
          ...CHANGE,
          op: 'update',
          record: { id: 3, balance: '9.00' },
          unchanged: [],
          old: { kind: 'key', record: { id: 1 } },
        },
        { ...CHANGE, op: 'delete', old: { kind: 'key', record: { id: 2 } } },
        { ...CHANGE, op: 'insert', record: { id: 2, balance: '8.00' } },
      ),
    );
    expect(Object.fromEntries(documents.all)).toEqual({
      position: formatLsn(0x100n),
      'account 2': { id: 2, balance: '8.00' },
      'account 3': { id: 3, balance: '9.00' },
    });
  });
});

describe('the sink whose checkpoint the library keeps', () => {
  const PRODUCTS = of('public.products');
  const CHANGE = { ...PRODUCTS, ordinal: 0, commitLsn: 1n } as const;
  type Product = { id: number; name: string };
  type Shop = { 'public.products': Product };

  class Memory extends SearchIndex {
    readonly all = new Map<number | undefined, Partial<Product>>();

    async clear(): Promise<void> {
      this.all.clear();
    }

    async put(documents: readonly Partial<Product>[]): Promise<void> {
      for (const document of documents)
        this.all.set(document.id, {
          ...this.all.get(document.id),
          ...document,
        });
    }

    async remove(id: number | undefined): Promise<void> {
      this.all.delete(id);
    }
  }

  it('is as good when rows and changes come twice', async () => {
    const index = new Memory();
    index.all.set(9, { id: 9, name: 'left from before' });
    const sink = new ProductSearch(index);
    const rows = [1, 2].map((id): SnapshotRow<Shop> => ({
      ...PRODUCTS,
      op: 'snapshot',
      record: { id, name: `p${id}` },
      unchanged: [],
    }));
    const changes: Change<Shop>[] = [
      {
        ...CHANGE,
        op: 'update',
        record: { id: 3, name: 'renamed' },
        unchanged: [],
        old: { kind: 'key', record: { id: 1 } },
      },
      { ...CHANGE, op: 'delete', old: { kind: 'key', record: { id: 2 } } },
    ];
    await sink.load([], CLEARING);
    for (const _ of ['once', 'again']) await sink.load(rows, CONTEXT);
    expect([...index.all.keys()]).toEqual([1, 2]);
    const context = { transaction: transaction(0x100n) };
    for (const _ of ['once', 'again'])
      for (const change of changes) await sink.follow(change, context);
    expect([...index.all.values()]).toEqual([{ id: 3, name: 'renamed' }]);
  });
});
