/** A row of the outbox as the relay receives it. */
export interface OutboxRow {
  /** A bigint, as text. */
  id: string;
  order_id: number;
  type: EventType;
  /** JSON, as text. */
  payload: string;
  created_at: string;
}

/** What may happen to an order. */
export type EventType = 'placed' | 'amended';

/** The published tables. */
export interface Source {
  'public.outbox': OutboxRow;
}

/** An event as the consumer gets it. */
export interface OrderEvent {
  /** By this the consumer knows an event that comes again. */
  readonly id: string;
  readonly orderId: number;
  readonly type: EventType;
  /** JSON, as the shop has written it: `{ "cents": … }`. */
  readonly payload: string;
}

/** The pattern of the message that carries an {@link OrderEvent}. */
export const ORDER_EVENT = 'order-event';

/** Name of the replication slot. */
export const SLOT = 'outbox_relay';

/**
 * Only the outbox is published: what the tables of the shop look like stays its own affair. The relay reads no table, and
 * keeps its checkpoint in a schema of its own, which its role finds first because both have the same name.
 */
export const SHOP_SCHEMA = `
CREATE TABLE orders (
  id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  cents int NOT NULL
);
CREATE TABLE outbox (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  order_id int NOT NULL,
  type text NOT NULL,
  payload jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE PUBLICATION outbox_pub FOR TABLE outbox;
CREATE SCHEMA AUTHORIZATION relay;
`;

/**
 * The inbox remembers each event that was seen, and how often. The bookings are the effect, and have no key by which
 * PostgreSQL would refuse a second one: that each is there once is owed to the inbox alone.
 */
export const BILLING_SCHEMA = `
CREATE TABLE inbox (
  event_id bigint PRIMARY KEY,
  times_seen int NOT NULL DEFAULT 1,
  first_seen timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE bookings (
  entry bigint GENERATED ALWAYS AS IDENTITY,
  event_id bigint NOT NULL,
  order_id int NOT NULL,
  cents int NOT NULL
);
GRANT SELECT, INSERT, UPDATE ON inbox TO billing;
GRANT INSERT ON bookings TO billing;
`;
