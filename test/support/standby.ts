import { onTestFinished } from 'vitest';
import { PostgresServer } from './postgres-server.js';
import { TestDatabase } from './test-database.js';
import { waitFor } from './wait-for.js';

/** First version that synchronizes slots to standbys. */
const FIRST_WITH_FAILOVER = 17;
const PHYSICAL_SLOT = 'to_standby';
/** A database goes with its server. */
const REMOVE_TIMEOUT_MS = 60_000;

/** Two servers, one the copy of the other, and where a client finds the one that counts. */
export class PrimaryAndStandby {
  private constructor(
    readonly primary: PostgresServer,
    readonly standby: PostgresServer,
    /** On the primary. */
    readonly source: TestDatabase,
    /** The same database on the standby. */
    readonly copy: TestDatabase,
  ) {}

  /**
   * Starts both, with a database in which `schema` was run; they go when the test has finished. From PostgreSQL 17 on, slots are
   * synchronized, and no consumer gets ahead of the standby unless it may.
   */
  static async start({
    schema = 'create table t(id int primary key, v text); create publication p for table t',
    consumersMayLead = false,
  }: {
    readonly schema?: string;
    readonly consumersMayLead?: boolean;
  } = {}): Promise<PrimaryAndStandby> {
    const primary = await PostgresServer.start();
    onTestFinished(() => primary.remove(), REMOVE_TIMEOUT_MS);
    const source = await primary.createDatabase();
    await source.query(schema);
    await primary.query(
      'select pg_create_physical_replication_slot($1, true)',
      [PHYSICAL_SLOT],
    );
    const synchronizes = primary.majorVersion >= FIRST_WITH_FAILOVER;
    await primary.stop();
    if (synchronizes && !consumersMayLead)
      primary.configure({ synchronized_standby_slots: PHYSICAL_SLOT });
    const { host, port, user, password } = primary.connection;
    const standby = await PostgresServer.startStandby(primary, {
      primary_conninfo: `host=${host} port=${port} user=${user} password=${password} dbname=postgres`,
      primary_slot_name: PHYSICAL_SLOT,
      hot_standby_feedback: 'on',
      wal_receiver_status_interval: '1s',
      wal_retrieve_retry_interval: '200ms',
      // After the promotion there is no standby to wait for.
      ...(synchronizes && {
        sync_replication_slots: 'on',
        synchronized_standby_slots: '',
      }),
    });
    onTestFinished(() => standby.remove(), REMOVE_TIMEOUT_MS);
    await primary.startAgain();
    const copy = new TestDatabase(standby, source.name);
    const pair = new PrimaryAndStandby(primary, standby, source, copy);
    await pair.#connected();
    return pair;
  }

  /** Waits until the standby has a copy of the slot that survives a promotion; that needs a primary that moves on. */
  async slotSynchronized(slotName: string): Promise<void> {
    await waitFor(
      async () => {
        await this.primary.query('select pg_log_standby_snapshot()');
        // Wakes the worker, which looks ever more seldom, up to every 30 s.
        await this.standby.query('select pg_reload_conf()');
        const copies = await this.standby.query(
          'select from pg_replication_slots where slot_name = $1 and synced and not temporary',
          [slotName],
        );
        // Until the primary knows what the copy needs, it may remove rows of its catalog, and the copy is invalidated.
        const held = await this.primary.query(
          'select from pg_replication_slots where slot_name = $1 and catalog_xmin is not null',
          [PHYSICAL_SLOT],
        );
        return copies.length === 1 && held.length === 1;
      },
      { timeout: 40_000, message: 'the slot to be synchronized' },
    );
  }

  /** Waits until the standby has replayed what the primary has written. */
  async caughtUp(): Promise<void> {
    const [end] = await this.primary.query<{ lsn: string }>(
      'select pg_current_wal_flush_lsn() as lsn',
    );
    await waitFor(
      async () => {
        const [row] = await this.standby.query<{ reached: boolean }>(
          'select pg_last_wal_replay_lsn() >= $1::text::pg_lsn as reached',
          [end?.lsn],
        );
        return row?.reached;
      },
      { message: 'the standby to replay' },
    );
  }

  /** Has the standby receive nothing from here on. */
  async cutOff(): Promise<void> {
    await this.standby.query(`alter system set primary_conninfo = ''`);
    await this.standby.query('select pg_reload_conf()');
    await waitFor(
      async () =>
        (await this.standby.query('select from pg_stat_wal_receiver'))
          .length === 0,
      { message: 'the standby to be cut off' },
    );
  }

  /** Makes the standby a primary. */
  async promote(): Promise<void> {
    await this.standby.query('select pg_promote(true, 60)');
    await waitFor(
      async () => {
        const [row] = await this.standby.query<{ standby: boolean }>(
          'select pg_is_in_recovery() as standby',
        );
        return row?.standby === false;
      },
      { message: 'the promotion' },
    );
  }

  async #connected(): Promise<void> {
    await waitFor(
      async () =>
        (await this.standby.query('select from pg_stat_wal_receiver'))
          .length === 1,
      { timeout: 20_000, message: 'the standby to connect' },
    );
  }
}
