/** What a lane may change of the rows that were there before. */
export interface ExistingRows {
  readonly customers: readonly number[];
  readonly orders: readonly {
    readonly number: string;
    readonly customer: number;
  }[];
}

/** Each lane changes this many customers that were there before, spread over all of them, and their orders. */
const CUSTOMERS_PER_LANE = 100;
const ORDERS_PER_CUSTOMER = 2;
/** A customer, the orders, and one line of each. */
const ROWS_PER_CUSTOMER = 1 + 2 * ORDERS_PER_CUSTOMER;
/** Of so many orders one has a note that is stored apart. */
const LONG_NOTE_EVERY = 50;

/** SQL that fills an empty shop with about this many rows. Their keys are none that the writer gives. */
export function fillShop(rows: number): string {
  const customers = customersOf(rows);
  const orders = customers * ORDERS_PER_CUSTOMER;
  return `
    INSERT INTO customers SELECT -n, 'customer ' || n, CASE WHEN n % 3 = 0 THEN 'profile of ' || n END
      FROM generate_series(1, ${customers}) AS n;
    INSERT INTO orders SELECT 'old-' || n, -(1 + (n - 1) / ${ORDERS_PER_CUSTOMER}), 'sent', n % 1000,
        CASE WHEN n % ${LONG_NOTE_EVERY} = 0
          THEN (SELECT string_agg(md5(n || '-' || part), '') FROM generate_series(1, 120) AS part)
          ELSE 'note of ' || n END
      FROM generate_series(1, ${orders}) AS n;
    INSERT INTO order_lines SELECT 'old-' || n, 1, 'product ' || n % 100, 1 + n % 9, n % 1000
      FROM generate_series(1, ${orders}) AS n;
    ANALYZE customers, orders, order_lines;`;
}

/** What is for one lane alone in a shop that {@link fillShop} has filled. */
export function existingRows(
  rows: number,
  lane: number,
  lanes: number,
): ExistingRows {
  const mine = Math.floor(customersOf(rows) / lanes);
  const step = Math.max(1, Math.floor(mine / CUSTOMERS_PER_LANE));
  const numbers: number[] = [];
  for (let each = 0; each < mine; each += step)
    numbers.push(1 + lane + each * lanes);
  return {
    customers: numbers.map((number) => -number),
    orders: numbers.flatMap((number) =>
      Array.from({ length: ORDERS_PER_CUSTOMER }, (_, index) => ({
        number: `old-${1 + (number - 1) * ORDERS_PER_CUSTOMER + index}`,
        customer: -number,
      })),
    ),
  };
}

function customersOf(rows: number): number {
  return Math.floor(rows / ROWS_PER_CUSTOMER);
}
