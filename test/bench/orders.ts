import type { Client } from 'pg';
import { RowChecksum } from './checksum.js';

const ROWS_PER_QUERY = 20_000;

/** The table that readers read the changes of, and its publication. */
export const CREATE_ORDERS = `
  CREATE TABLE orders (
    id int8 PRIMARY KEY, quantity int4, label text, amount numeric(12,2),
    placed_at timestamptz, attributes jsonb, active bool, reference uuid);
  CREATE PUBLICATION p FOR TABLE orders`;

/** The values of the row `id`, as SQL: the same every time. */
export function orderValues(labelLength: number): string {
  return `id, (id * 7919) % 100000, left(repeat(md5(id::text), ${Math.ceil(labelLength / 32)}), ${labelLength}),
          (id % 1000000) / 100.0, timestamptz '2026-01-01 00:00:00Z' + id * interval '1.000001 second',
          jsonb_build_object('size', id % 50, 'colour', 'c' || id % 9), id % 3 = 0, md5((-id)::text)::uuid`;
}

/** Reads the table in the form that `exact` values have. */
export async function checksumOfOrders(session: Client): Promise<RowChecksum> {
  const checksum = new RowChecksum();
  for (let last = '0'; ;) {
    const { rows } = await session.query<{ id: string }>({
      name: 'page',
      text: `SELECT id::text, quantity, label, amount::text,
                    to_char(placed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS placed_at,
                    attributes::text, active, reference::text
               FROM orders WHERE orders.id > $1 ORDER BY orders.id LIMIT ${ROWS_PER_QUERY}`,
      values: [last],
    });
    for (const row of rows) checksum.add({ ...row });
    const end = rows.at(-1);
    if (end === undefined) return checksum;
    last = end.id;
  }
}
