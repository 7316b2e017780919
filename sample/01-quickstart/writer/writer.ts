import { Client, type ClientConfig } from 'pg';
import { existingRows } from './existing-rows.js';
import { Lane } from './lane.js';

export interface WriterOptions {
  readonly connection: ClientConfig;
  /** Decides what is written. */
  readonly seed: number;
  /** Rows in the shop at the beginning, by `fillShop`. */
  readonly existing: number;
  /** Awaited before each transaction. */
  readonly pace: () => Promise<void>;
}

/** In an empty shop: a delivery entered by mistake, and taken back with the whole tables. */
const FIRST_TRANSACTIONS = [
  `INSERT INTO customers SELECT n, 'mistake', repeat('x', 5000) FROM generate_series(1, 50) AS n`,
  'TRUNCATE customers, orders, order_lines',
] as const;

const LANES = 4;

/** Changes the shop over several connections at once. */
export class Writer {
  readonly #options: WriterOptions;
  #committed = 0;
  #rolledBack = 0;
  #stopped = false;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  get committed(): number {
    return this.#committed;
  }

  get rolledBack(): number {
    return this.#rolledBack;
  }

  /** Resolves when this many transactions have committed, or after {@link stop}. */
  async write(transactions: number): Promise<void> {
    const { seed, existing } = this.#options;
    if (existing === 0) await this.#mistake();
    const rest = transactions - this.#committed;
    const quota = (lane: number) => Math.floor((rest + lane) / LANES);
    await Promise.all(
      Array.from({ length: LANES }, (_, lane) =>
        this.#writeLane(
          new Lane(seed, lane, existingRows(existing, lane, LANES)),
          quota(lane),
        ),
      ),
    );
  }

  /** Lets the running transactions end. */
  stop(): void {
    this.#stopped = true;
  }

  async #mistake(): Promise<void> {
    await this.#connected(async (client) => {
      for (const sql of FIRST_TRANSACTIONS) {
        await client.query(sql);
        this.#committed += 1;
      }
    });
  }

  async #writeLane(lane: Lane, transactions: number): Promise<void> {
    await this.#connected(async (client) => {
      for (let left = transactions; left > 0 && !this.#stopped;) {
        await this.#options.pace();
        if (this.#stopped) return;
        const { sql, commits } = lane.next();
        await client.query(sql);
        if (commits) {
          left -= 1;
          this.#committed += 1;
        } else {
          this.#rolledBack += 1;
        }
      }
    });
  }

  async #connected(work: (client: Client) => Promise<void>): Promise<void> {
    const client = new Client(this.#options.connection);
    // A connection that breaks rejects its query.
    client.on('error', () => {});
    await client.connect();
    try {
      await work(client);
    } finally {
      await client.end();
    }
  }
}
