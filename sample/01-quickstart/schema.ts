/** Rows of the source as the sink receives them: with `types: 'text'` every value is the server's text. */
export interface Shop {
  'public.customers': {
    id: string;
    name: string;
    profile: string | null;
  };
  'public.orders': {
    number: string;
    customer_id: string;
    status: string;
    total: string;
    note: string | null;
  };
  'public.order_lines': {
    order_number: string;
    line: string;
    product: string;
    quantity: string;
    price: string;
  };
}

/** Names of one table. They are constants: no identifier of the stream ever gets into SQL. */
export interface Table {
  readonly name: string;
  readonly key: readonly string[];
  readonly columns: readonly string[];
}

export const TABLES: Readonly<Record<keyof Shop, Table>> = {
  'public.customers': {
    name: 'customers',
    key: ['id'],
    columns: ['id', 'name', 'profile'],
  },
  'public.orders': {
    name: 'orders',
    key: ['number'],
    columns: ['number', 'customer_id', 'status', 'total', 'note'],
  },
  'public.order_lines': {
    name: 'order_lines',
    key: ['order_number', 'line'],
    columns: ['order_number', 'line', 'product', 'quantity', 'price'],
  },
};

export function isOfShop(relation: string): relation is keyof Shop {
  return Object.hasOwn(TABLES, relation);
}

/** `profile` and `note` hold up to 6 kB: PostgreSQL stores such values apart (TOAST) and streams them only when they change. */
export const SOURCE_SCHEMA = `
CREATE TABLE customers (
  id bigint PRIMARY KEY,
  name text NOT NULL,
  profile text
);
CREATE TABLE orders (
  number text PRIMARY KEY,
  customer_id bigint NOT NULL REFERENCES customers ON UPDATE CASCADE ON DELETE CASCADE,
  status text NOT NULL,
  total numeric(12, 2) NOT NULL,
  note text
);
CREATE INDEX ON orders (customer_id);
CREATE TABLE order_lines (
  order_number text NOT NULL REFERENCES orders ON UPDATE CASCADE ON DELETE CASCADE,
  line int NOT NULL,
  product text NOT NULL,
  quantity int NOT NULL,
  price numeric(12, 2) NOT NULL,
  PRIMARY KEY (order_number, line)
);
CREATE PUBLICATION shop FOR TABLE customers, orders, order_lines;
`;

/**
 * The copy needs keys and no foreign keys: what the source cascades arrives as changes of its own. The ledger gets one
 * row for each applied transaction and has no unique constraint, so that it would show one that was applied twice; so does the list of what
 * a snapshot has copied. Large columns are nullable: the stream may bring a row without them before a snapshot does.
 */
export const TARGET_SCHEMA = `
CREATE TABLE customers (
  id bigint PRIMARY KEY,
  name text NOT NULL,
  profile text
);
CREATE TABLE orders (
  number text PRIMARY KEY,
  customer_id bigint NOT NULL,
  status text NOT NULL,
  total numeric(12, 2) NOT NULL,
  note text
);
CREATE TABLE order_lines (
  order_number text,
  line int,
  product text NOT NULL,
  quantity int NOT NULL,
  price numeric(12, 2) NOT NULL,
  PRIMARY KEY (order_number, line)
);
CREATE TABLE ledger (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  commit_lsn pg_lsn NOT NULL,
  changes int NOT NULL,
  committed_at timestamptz NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE copied (
  table_name text NOT NULL,
  keys text[] NOT NULL
);
`;
