import {
  ClientProxy,
  type ReadPacket,
  type WritePacket,
} from '@nestjs/microservices';
import { describe, expect, it } from 'vitest';
import { Ledger } from '../sample/03-outbox/billing/ledger.js';
import { Database } from '../sample/03-outbox/database.js';
import {
  BILLING,
  OutboxRelay,
} from '../sample/03-outbox/relay/outbox.relay.js';
import {
  BILLING_SCHEMA,
  type OrderEvent,
  SHOP_SCHEMA,
} from '../sample/03-outbox/schema.js';
import { OrderService } from '../sample/03-outbox/shop/order.service.js';
import { judge } from '../sample/03-outbox/verdict.js';
import { bootWithStore } from './support/boot-with-store.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';

/** Books everything at once. */
class Billing extends ClientProxy {
  readonly events: unknown[] = [];

  async connect(): Promise<void> {}

  async close(): Promise<void> {}

  protected override publish(
    { data }: ReadPacket<unknown>,
    answer: (packet: WritePacket) => void,
  ): () => void {
    this.events.push(data);
    answer({ response: 'booked', isDisposed: true });
    return () => {};
  }

  protected override async dispatchEvent(): Promise<never> {
    throw new Error('An event that nobody answers.');
  }

  override unwrap(): never {
    throw new Error('There is nothing below.');
  }
}

describe('the parts of the sample 03-outbox', () => {
  const suite = useServer();

  /** The two databases of the sample, without its roles. */
  async function databases(): Promise<{
    readonly shop: TestDatabase;
    readonly billing: TestDatabase;
  }> {
    const shop = await suite.database('shop');
    const billing = await suite.database('billing');
    await shop.query(SHOP_SCHEMA.replace(/^CREATE SCHEMA .*$/m, ''));
    await billing.query(BILLING_SCHEMA.replace(/^GRANT .*$/gm, ''));
    return { shop, billing };
  }

  const event = (id: number, orderId = 1): OrderEvent => ({
    id: String(id),
    orderId,
    type: 'placed',
    payload: '{"cents": 500}',
  });

  it('writes order and event together, or neither', async () => {
    const { shop } = await databases();
    const database = new Database(shop.url);
    const orders = new OrderService(database);
    const id = await orders.place(1_000);
    await orders.amend(id, 250);
    await shop.query('ALTER TABLE outbox ADD CHECK (id < 3)');
    await expect(orders.place(1_000)).rejects.toThrow('violates check');
    await database.onModuleDestroy();
    expect(await shop.query('SELECT id, cents FROM orders')).toEqual([
      { id, cents: 1_250 },
    ]);
    expect(
      await shop.query(
        'SELECT order_id, type, payload FROM outbox ORDER BY id',
      ),
    ).toEqual([
      { order_id: id, type: 'placed', payload: { cents: 1_000 } },
      { order_id: id, type: 'amended', payload: { cents: 250 } },
    ]);
  });

  it('relays an event whose row is deleted in the transaction that inserts it', async () => {
    const { shop } = await databases();
    const billing = new Billing();
    const pipeline = await bootWithStore(
      shop,
      [OutboxRelay, { provide: BILLING, useValue: billing }],
      { publication: 'outbox_pub' },
    );
    await shop.query(
      `BEGIN; INSERT INTO outbox (order_id, type, payload) VALUES (7, 'placed', '{"cents": 5}'); DELETE FROM outbox; COMMIT`,
    );
    await pipeline.caughtUp();
    expect(await shop.query('SELECT FROM outbox')).toEqual([]);
    expect(billing.events).toEqual([
      { id: '1', orderId: 7, type: 'placed', payload: '{"cents": 5}' },
    ]);
  });

  it('books an event once, however often it comes, also at the same time', async () => {
    const { shop, billing } = await databases();
    const database = new Database(billing.url);
    const ledger = new Ledger(database);
    const receipts = await Promise.all([
      ledger.book(event(1)),
      ledger.book(event(1)),
      ledger.book(event(1)),
    ]);
    expect(receipts.toSorted()).toEqual(['booked', 'known', 'known']);
    await expect(
      ledger.book({ ...event(2), payload: 'no JSON' }),
    ).rejects.toThrow('invalid input syntax');
    // What was not booked is not remembered either.
    expect(await ledger.book(event(2))).toBe('booked');
    await database.onModuleDestroy();
    expect(await judge(shop, billing)).toMatchObject({
      appliedTwice: 0,
      dropped: 2,
    });
  });

  it('tells each kind of fault', async () => {
    const { shop, billing } = await databases();
    await shop.query(
      `INSERT INTO outbox (order_id, type, payload) SELECT n % 2, 'placed', '{}' FROM generate_series(1, 8) AS n`,
    );
    await billing.query(
      `INSERT INTO inbox (event_id, times_seen) SELECT n, 1 + n % 2 FROM generate_series(1, 6) AS n;
       INSERT INTO bookings (event_id, order_id, cents)
         SELECT id, id % 2, 0 FROM unnest(ARRAY[1, 5, 3, 2, 2, 4, 4, 6]) AS id`,
    );
    expect(await judge(shop, billing)).toEqual({
      events: 8,
      lost: 2,
      appliedTwice: 2,
      outOfOrder: 1,
      dropped: 3,
    });
  });
});
