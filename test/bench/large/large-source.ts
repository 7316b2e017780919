import type { Client } from 'pg';
import { dropSlots } from '../../support/logical-slot.js';
import type { PostgresServer } from '../../support/postgres-server.js';
import { present } from '../../support/present.js';
import type { TestDatabase } from '../../support/test-database.js';
import { waitFor } from '../../support/wait-for.js';
import type { RowChecksum } from '../checksum.js';
import { checksumOfOrders, CREATE_ORDERS, orderValues } from '../orders.js';
import { wallClock } from '../programs/wall-clock.js';
import type { LargeLoad } from './large-loads.js';

const LABEL_LENGTH = 32;
const ROWS_PER_STATEMENT = 50_000;
const FAREWELL_TIMEOUT_MS = 60_000;

/** When a transaction ran, in microseconds since 1970-01-01 UTC. */
export interface Written {
  readonly began: number;
  /** The client was told that it is committed. */
  readonly committed: number;
}

/** What the server did to decode a slot's transactions. */
export interface Decoded {
  /** Bytes that it wrote to its own disk. */
  readonly spilledBytes: number;
  /** Bytes of transactions that it sent while they ran. */
  readonly streamedBytes: number;
}

/** A database in which one transaction is written while a reader is connected. */
export class LargeSource {
  readonly #now = wallClock();

  private constructor(
    readonly database: TestDatabase,
    private readonly server: PostgresServer,
    private readonly session: Client,
  ) {}

  static async create(
    server: PostgresServer,
    { workMemKb }: LargeLoad,
  ): Promise<LargeSource> {
    const database = await server.createDatabase('bench');
    const session = await database.connect();
    await session.query(CREATE_ORDERS);
    await session.query(
      `ALTER DATABASE "${database.name}" SET logical_decoding_work_mem = '${workMemKb}kB'`,
    );
    return new LargeSource(database, server, session);
  }

  /** Makes what a reader begins with: an empty table, and a slot. */
  async prepare(slot: string): Promise<void> {
    await this.session.query('TRUNCATE orders');
    // The WAL of the reader before is of no use any more.
    await this.session.query('CHECKPOINT');
    await this.session.query(
      `SELECT pg_create_logical_replication_slot('${slot}', 'pgoutput')`,
    );
  }

  /** Writes all rows in one transaction, in several statements. */
  async write(rows: number): Promise<Written> {
    const began = this.#now();
    await this.session.query('BEGIN');
    for (let first = 1; first <= rows; first += ROWS_PER_STATEMENT) {
      const last = Math.min(rows, first + ROWS_PER_STATEMENT - 1);
      await this.session.query(
        `INSERT INTO orders SELECT ${orderValues(LABEL_LENGTH)} FROM generate_series(${first}::int8, ${last}) AS id`,
      );
    }
    await this.session.query('COMMIT');
    return { began, committed: this.#now() };
  }

  /** What a reader that has missed nothing has seen. */
  async expected(): Promise<RowChecksum> {
    return checksumOfOrders(this.session);
  }

  async decoded(slot: string): Promise<Decoded> {
    const { rows } = await this.session.query<{
      spilled: string;
      streamed: string;
    }>(
      `SELECT spill_bytes::text AS spilled, stream_bytes::text AS streamed
         FROM pg_stat_get_replication_slot('${slot}')`,
    );
    const { spilled, streamed } = present(rows[0]);
    return { spilledBytes: Number(spilled), streamedBytes: Number(streamed) };
  }

  /** Waits for the sessions of a reader to end. */
  async readerToLeave(): Promise<void> {
    await waitFor(() => this.#isAlone(), {
      timeout: FAREWELL_TIMEOUT_MS,
      message: 'the sessions of a reader to end',
    });
  }

  /** Ends whoever still reads, and drops the slots. */
  async tidy(): Promise<void> {
    await dropSlots(this.server, this.database.name);
  }

  async close(): Promise<void> {
    await this.tidy();
    await this.database.close();
  }

  async #isAlone(): Promise<boolean> {
    const { rows } = await this.session.query(
      `SELECT FROM pg_stat_activity
        WHERE backend_type IN ('client backend', 'walsender') AND pid <> pg_backend_pid()`,
    );
    return rows.length === 0;
  }
}
