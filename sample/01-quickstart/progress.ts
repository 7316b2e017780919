import type { Pair } from './environment.js';

/** How far the copy has come. */
export interface Reading {
  /** Transactions and rows applied since the first reading. */
  readonly transactions: number;
  readonly rows: number;
  /** The same a second, since the reading before. */
  readonly transactionsPerSecond: number;
  readonly rowsPerSecond: number;
  /** WAL that the server still keeps for the copy. */
  readonly lagBytes: number;
  /** Milliseconds from commit to commit, of the newest transaction since the reading before. */
  readonly delayMs: number | null;
}

interface LedgerRow extends Record<string, unknown> {
  readonly newest: string | null;
  readonly transactions: number;
  readonly rows: number;
  readonly delay_ms: number | null;
}

/** Reads the progress from the two databases, and not from what the application says. */
export class Progress {
  #newest = '0';
  #transactions = 0;
  #rows = 0;
  #at = performance.now();

  constructor(private readonly pair: Pair) {}

  async read(): Promise<Reading> {
    const [ledger, lagBytes] = await Promise.all([
      this.#readLedger(),
      this.#readLag(),
    ]);
    const { newest, transactions, rows, delay_ms } = ledger;
    const now = performance.now();
    const seconds = (now - this.#at) / 1000;
    this.#at = now;
    this.#newest = newest ?? this.#newest;
    this.#transactions += transactions;
    this.#rows += rows;
    return {
      transactions: this.#transactions,
      rows: this.#rows,
      transactionsPerSecond: Math.round(transactions / seconds),
      rowsPerSecond: Math.round(rows / seconds),
      lagBytes,
      delayMs: delay_ms,
    };
  }

  async #readLedger(): Promise<LedgerRow> {
    const [row] = await this.pair.target.query<LedgerRow>(
      `SELECT max(id)::text AS newest, count(*)::int AS transactions, coalesce(sum(changes), 0)::int AS rows,
              (extract(epoch FROM max(applied_at) - max(committed_at)) * 1000)::int AS delay_ms
         FROM ledger WHERE id > $1`,
      [this.#newest],
    );
    if (row === undefined) throw new Error('An aggregate gives one row.');
    return row;
  }

  async #readLag(): Promise<number> {
    const [row] = await this.pair.source.query<{ lag: number }>(
      `SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), confirmed_flush_lsn)::float8 AS lag
         FROM pg_replication_slots WHERE slot_name = $1`,
      [this.pair.slotName],
    );
    return row?.lag ?? 0;
  }
}

/** One line for a person. */
export function describe(reading: Reading): string {
  const { transactionsPerSecond, rowsPerSecond, delayMs } = reading;
  const delay = delayMs === null ? '' : `, ${format(delayMs)} ms`;
  return [
    `${format(reading.transactions)} transactions (${format(transactionsPerSecond)}/s)`,
    `${format(reading.rows)} rows (${format(rowsPerSecond)}/s)`,
    `lag ${format(Math.round(reading.lagBytes / 1024))} kB${delay}`,
  ].join('   ');
}

function format(number: number): string {
  return number.toLocaleString('en-US');
}
