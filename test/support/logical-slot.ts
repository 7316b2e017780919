import { type Lsn, parseLsn } from '../../lib/engine/model/lsn.js';
import { waitFor, type WaitOptions } from './wait-for.js';

/** Runs SQL and gives rows: a server or a database. */
export interface Queryable {
  query<R extends Record<string, unknown>>(
    sql: string,
    values?: readonly unknown[],
  ): Promise<R[]>;
}

/** A row of pg_replication_slots. */
export interface LogicalSlot {
  readonly name: string;
  readonly plugin: string;
  readonly database: string;
  readonly temporary: boolean;
  readonly active: boolean;
  /** Process id of the walsender that streams from it. */
  readonly activePid: number | null;
  readonly restartLsn: Lsn | null;
  readonly confirmedFlushLsn: Lsn | null;
  readonly walStatus: 'reserved' | 'extended' | 'unreserved' | 'lost' | null;
}

interface SlotRow extends Record<string, unknown> {
  slot_name: string;
  plugin: string;
  database: string;
  temporary: boolean;
  active: boolean;
  active_pid: number | null;
  restart_lsn: string | null;
  confirmed_flush_lsn: string | null;
  wal_status: LogicalSlot['walStatus'];
}

/** The slot, or `null` when there is none. */
export async function readSlot(
  on: Queryable,
  name: string,
): Promise<LogicalSlot | null> {
  const rows = await on.query<SlotRow>(
    `SELECT slot_name, plugin, database, temporary, active, active_pid, restart_lsn, confirmed_flush_lsn, wal_status
       FROM pg_replication_slots WHERE slot_name = $1`,
    [name],
  );
  const row = rows[0];
  if (row === undefined) return null;
  return {
    name: row.slot_name,
    plugin: row.plugin,
    database: row.database,
    temporary: row.temporary,
    active: row.active,
    activePid: row.active_pid,
    restartLsn: row.restart_lsn === null ? null : parseLsn(row.restart_lsn),
    confirmedFlushLsn:
      row.confirmed_flush_lsn === null
        ? null
        : parseLsn(row.confirmed_flush_lsn),
    walStatus: row.wal_status,
  };
}

/** Where the server writes next. */
export async function currentLsn(on: Queryable): Promise<Lsn> {
  const rows = await on.query<{ lsn: string }>(
    'SELECT pg_current_wal_insert_lsn() AS lsn',
  );
  const lsn = parseLsn(rows[0]?.lsn ?? '');
  if (lsn === null) throw new Error('The server gave no position.');
  return lsn;
}

/** Waits until somebody streams from the slot, and gives the process id of that walsender. */
export function walsenderPid(
  on: Queryable,
  slotName: string,
  options: WaitOptions = {},
): Promise<number> {
  return waitFor(async () => (await readSlot(on, slotName))?.activePid, {
    message: `a walsender on slot ${slotName}`,
    ...options,
  });
}

/** Waits until the slot is confirmed up to a position. */
export async function confirmedUpTo(
  on: Queryable,
  slotName: string,
  lsn: Lsn,
  options: WaitOptions = {},
): Promise<void> {
  await waitFor(
    async () => {
      const confirmed = (await readSlot(on, slotName))?.confirmedFlushLsn;
      return confirmed !== null && confirmed !== undefined && confirmed >= lsn;
    },
    { message: `slot ${slotName} to be confirmed`, ...options },
  );
}

/** Ends a server process and waits until it is gone. */
export async function terminateBackend(
  on: Queryable,
  pid: number,
): Promise<void> {
  await on.query('SELECT pg_terminate_backend($1, 10000)', [pid]);
}

/** Drops every slot of a database, active ones too. */
export async function dropSlots(
  on: Queryable,
  database: string,
): Promise<void> {
  await waitFor(
    async () => {
      const slots = await on.query<{
        slot_name: string;
        active_pid: number | null;
      }>(
        'SELECT slot_name, active_pid FROM pg_replication_slots WHERE database = $1',
        [database],
      );
      for (const { slot_name, active_pid } of slots) {
        if (active_pid !== null) await terminateBackend(on, active_pid);
        // A client that reconnects at once may be faster; the next round ends it again.
        await on
          .query('SELECT pg_drop_replication_slot($1)', [slot_name])
          .catch(() => {});
      }
      return slots.length === 0;
    },
    { message: `the slots of ${database} to go` },
  );
}
