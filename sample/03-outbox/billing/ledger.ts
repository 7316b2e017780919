import { Injectable } from '@nestjs/common';
import { Database } from '../database.js';
import type { OrderEvent } from '../schema.js';

/** What became of an event. */
export type Receipt = 'booked' | 'known';

/** Books each event once, however often it comes. */
@Injectable()
export class Ledger {
  constructor(private readonly database: Database) {}

  /** Inbox and booking commit together. Of two calls with one event the second waits for the first. */
  book({ id, orderId, payload }: OrderEvent): Promise<Receipt> {
    return this.database.transaction(async (client) => {
      const { rows } = await client.query<{ times_seen: number }>(
        `INSERT INTO inbox (event_id) VALUES ($1)
         ON CONFLICT (event_id) DO UPDATE SET times_seen = inbox.times_seen + 1
         RETURNING times_seen`,
        [id],
      );
      if (rows[0]?.times_seen !== 1) return 'known';
      await client.query(
        `INSERT INTO bookings (event_id, order_id, cents)
         VALUES ($1, $2, ($3::jsonb ->> 'cents')::int)`,
        [id, orderId, payload],
      );
      return 'booked';
    });
  }
}
