/** Rows that are there before anybody reads, and how they are made. */
export interface SnapshotLoad {
  readonly name: 'rows2M' | 'rows200k' | 'large';
  readonly rows: number;
  /** Columns of the table `orders`, the first of which is its primary key. */
  readonly columns: string;
  /** Their values for the row `id`, as SQL. */
  readonly values: string;
  /** A reader whose pages are of so many rows whatever their size would need a gigabyte. */
  readonly boundedReadersOnly: boolean;
}

const COLUMNS =
  'id int8 PRIMARY KEY, quantity int4, label text, amount numeric(12,2), placed_at timestamptz, attributes jsonb, active bool, reference uuid';
const VALUES = `id, (id * 7919) % 100000, md5(id::text), (id % 1000000) / 100.0,
  timestamptz '2026-01-01 00:00:00Z' + id * interval '1.000001 second',
  jsonb_build_object('size', id % 50, 'colour', 'c' || id % 9), id % 3 = 0, md5((-id)::text)::uuid`;
/** Characters of a row of one megabyte. */
const LARGE = 1_000_000;

/**
 * Every load: small rows, a tenth of them, and large rows.
 *
 * @param scale of the number of rows
 */
export function snapshotLoads(scale: number): SnapshotLoad[] {
  const scaled = (rows: number): number =>
    Math.max(1, Math.round(rows * scale));
  const small = { columns: COLUMNS, values: VALUES, boundedReadersOnly: false };
  return [
    { name: 'rows2M', rows: scaled(2_000_000), ...small },
    { name: 'rows200k', rows: scaled(200_000), ...small },
    {
      name: 'large',
      rows: scaled(2_000),
      columns: 'id int8 PRIMARY KEY, label text',
      values: `id, repeat(md5(id::text), ${LARGE / 32})`,
      boundedReadersOnly: true,
    },
  ];
}
