import type { Client } from 'pg';
import { dropSlots } from '../support/logical-slot.js';
import type { PostgresServer } from '../support/postgres-server.js';
import { present } from '../support/present.js';
import type { TestDatabase } from '../support/test-database.js';
import type { Workload } from './loads.js';
import { checksumOfOrders, CREATE_ORDERS, orderValues } from './orders.js';

/** The slot that the WAL is kept for. Nobody reads from it: readers get copies. */
const KEPT_SLOT = 'bench_kept';

/** Runs when the tables are there and nothing is captured. */
export type Prepare = (database: TestDatabase) => Promise<void>;

/** What a reader that has missed nothing has seen. */
export interface Expected {
  readonly rows: number;
  readonly transactions: number;
  /** See `RowChecksum`. */
  readonly checksum: number;
  /** Messages of the output plugin. */
  readonly messages: number;
  /** End of the last commit, as the server prints it. */
  readonly endLsn: string;
}

/**
 * A database with the table `orders`, the publication `p`, and WAL that a slot keeps. All runs on one session, which
 * stays open: the time of an ended one would count as a reader's.
 */
export class Source {
  private constructor(
    readonly database: TestDatabase,
    private readonly server: PostgresServer,
    private readonly session: Client,
  ) {}

  static async create(
    server: PostgresServer,
    prepare?: Prepare,
  ): Promise<Source> {
    const database = await server.createDatabase('bench');
    const session = await database.connect();
    await session.query(`${CREATE_ORDERS}; SET work_mem = '1GB'`);
    await prepare?.(database);
    await session.query(
      `SELECT pg_create_logical_replication_slot('${KEPT_SLOT}', 'pgoutput')`,
    );
    return new Source(database, server, session);
  }

  /** The server's process of the session. */
  async sessionPid(): Promise<number> {
    const { rows } = await this.session.query<{ pid: number }>(
      'SELECT pg_backend_pid() AS pid',
    );
    return present(rows[0]).pid;
  }

  /** Sets `wal_sender_timeout` for the readers that connect from now on. */
  async limitSilence(walSenderTimeout: string): Promise<void> {
    await this.session.query(
      `ALTER DATABASE "${this.database.name}" SET wal_sender_timeout = '${walSenderTimeout}'`,
    );
  }

  /** Writes the rows of a workload, the same every time. */
  async write(workload: Workload): Promise<void> {
    const { rows, rowsPerTransaction, labelLength } = workload;
    await this.session.query(`DO $$
      DECLARE first int8 := 1;
      BEGIN
        WHILE first <= ${rows} LOOP
          INSERT INTO orders
          SELECT ${orderValues(labelLength)}
            FROM generate_series(first, first + ${rowsPerTransaction - 1}) AS id;
          COMMIT;
          first := first + ${rowsPerTransaction};
        END LOOP;
      END $$`);
    await this.session.query('CHECKPOINT');
  }

  /** Writes one row in a transaction of its own. */
  async writeOne(id: number): Promise<void> {
    await this.session.query({
      name: 'one',
      text: `INSERT INTO orders VALUES ($1, 1, 'one', 1.00, '2026-01-01 00:00:00Z', '{}', true, md5('one')::uuid)`,
      values: [id],
    });
  }

  /** Asks the server what is in the WAL and in the table. */
  async expected(): Promise<Expected> {
    const { rows } = await this.session.query<{
      rows: number;
      transactions: number;
      messages: number;
      end: string;
    }>(
      `SELECT count(*)::int AS messages, max(lsn)::text AS end,
              (count(*) FILTER (WHERE get_byte(data, 0) = ascii('I')))::int AS rows,
              (count(*) FILTER (WHERE get_byte(data, 0) = ascii('C')))::int AS transactions
         FROM ${peek(KEPT_SLOT)}`,
    );
    const wal = present(rows[0]);
    const checksum = await checksumOfOrders(this.session);
    if (checksum.rows !== wal.rows)
      throw new Error('The WAL has other rows than the table.');
    return {
      rows: wal.rows,
      transactions: wal.transactions,
      messages: wal.messages,
      checksum: checksum.sum,
      endLsn: wal.end,
    };
  }

  /** Counts what the server decodes, without sending it. */
  async countMessages(slot: string): Promise<number> {
    const { rows } = await this.session.query<{ messages: number }>(
      `SELECT count(*)::int AS messages FROM ${peek(slot)}`,
    );
    return present(rows[0]).messages;
  }

  /** @param plugin output plugin of the copy, which need not be that of the original */
  async copySlot(copy: string, plugin = 'pgoutput'): Promise<void> {
    await this.session.query(
      `SELECT pg_copy_logical_replication_slot('${KEPT_SLOT}', '${copy}', false, '${plugin}')`,
    );
  }

  async dropSlot(slot: string): Promise<void> {
    await this.session.query(`SELECT pg_drop_replication_slot('${slot}')`);
  }

  /** Whether no session of a client is left but our own. */
  async isAlone(): Promise<boolean> {
    const { rows } = await this.session.query(
      `SELECT FROM pg_stat_activity
        WHERE backend_type IN ('client backend', 'walsender') AND pid <> pg_backend_pid()`,
    );
    return rows.length === 0;
  }

  /** Ends whoever still reads, and drops the database. */
  async close(): Promise<void> {
    await dropSlots(this.server, this.database.name);
    await this.database.close();
  }
}

function peek(slot: string): string {
  return `pg_logical_slot_peek_binary_changes('${slot}', NULL, NULL, 'proto_version', '1', 'publication_names', 'p')`;
}
