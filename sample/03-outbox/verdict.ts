/** Runs SQL and gives rows. */
export interface Queryable {
  query<R extends Record<string, unknown>>(
    sql: string,
    values?: readonly unknown[],
  ): Promise<R[]>;
}

/** What the two databases say of the events. */
export interface Verdict {
  /** In the outbox. */
  readonly events: number;
  /** In the outbox, and without a booking. */
  readonly lost: number;
  /** Booked more than once. */
  readonly appliedTwice: number;
  /** Booked after a later event of the same order. */
  readonly outOfOrder: number;
  /** Deliveries that were recognised as repeated, and left out. */
  readonly dropped: number;
}

/** Compares the outbox with what was booked, event by event. */
export async function judge(
  shop: Queryable,
  billing: Queryable,
): Promise<Verdict> {
  const events = await shop.query<{ id: string }>('SELECT id FROM outbox');
  const bookings = await billing.query<{
    event_id: string;
    times: number;
    late: boolean;
  }>(
    `SELECT event_id, count(*)::int AS times, bool_or(late) AS late
       FROM (SELECT event_id, event_id < max(event_id) OVER (PARTITION BY order_id ORDER BY entry) AS late FROM bookings) AS entries
      GROUP BY event_id`,
  );
  const booked = new Set(bookings.map(({ event_id }) => event_id));
  return {
    events: events.length,
    lost: events.filter(({ id }) => !booked.has(id)).length,
    appliedTwice: bookings.filter(({ times }) => times > 1).length,
    outOfOrder: bookings.filter(({ late }) => late).length,
    dropped: await countDropped(billing),
  };
}

export async function countDropped(billing: Queryable): Promise<number> {
  const [inbox] = await billing.query<{ dropped: number }>(
    'SELECT coalesce(sum(times_seen - 1), 0)::int AS dropped FROM inbox',
  );
  return inbox?.dropped ?? 0;
}
