import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Database } from '../database.js';
import type { EventType } from '../schema.js';

/** Takes orders. It knows nothing of who listens, and calls nobody. */
@Injectable()
export class OrderService {
  constructor(private readonly database: Database) {}

  /** @returns the number of the order */
  place(cents: number): Promise<number> {
    return this.database.transaction(async (client) => {
      const { rows } = await client.query<{ id: number }>(
        'INSERT INTO orders (cents) VALUES ($1) RETURNING id',
        [cents],
      );
      const [order] = rows;
      if (order === undefined) throw new Error('The order has no number.');
      await announce(client, order.id, 'placed', { cents });
      return order.id;
    });
  }

  /** Adds to an order. The lock on its row puts events of one order in the order of their commits. */
  async amend(orderId: number, cents: number): Promise<void> {
    await this.database.transaction(async (client) => {
      await client.query('UPDATE orders SET cents = cents + $2 WHERE id = $1', [
        orderId,
        cents,
      ]);
      await announce(client, orderId, 'amended', { cents });
    });
  }
}

/** Part of the transaction that it tells of: both commit, or neither does. */
async function announce(
  client: PoolClient,
  orderId: number,
  type: EventType,
  payload: { readonly cents: number },
): Promise<void> {
  await client.query(
    'INSERT INTO outbox (order_id, type, payload) VALUES ($1, $2, $3)',
    [orderId, type, payload],
  );
}
