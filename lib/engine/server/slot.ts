import type { HaltCode } from '../model/halts.js';
import { parseLsn, type Lsn } from '../model/lsn.js';
import { quoteIdentifier, quoteLiteral } from './identifiers.js';
import type { CommandSession } from './session.js';

/**
 * What `pg_replication_slots` says of a slot, as far as it matters before streaming. Columns that the server's version
 * lacks are absent.
 *
 * @see {@link https://www.postgresql.org/docs/current/view-pg-replication-slots.html | pg_replication_slots}
 */
export interface SlotRow {
  readonly slot_type?: string;
  readonly plugin?: string | null;
  readonly database?: string | null;
  readonly temporary?: boolean;
  readonly active?: boolean;
  readonly two_phase?: boolean;
  readonly failover?: boolean;
  readonly synced?: boolean;
  readonly restart_lsn?: string | null;
  readonly confirmed_flush_lsn?: string | null;
  readonly wal_status?: string | null;
  readonly conflicting?: boolean | null;
  readonly invalidation_reason?: string | null;
}

/** What a slot is good for. */
export type SlotVerdict =
  | { readonly kind: 'absent' }
  | {
      readonly kind: 'usable';
      readonly confirmedFlush: Lsn;
      /** Not synchronized to standbys, and nobody uses it: that can be changed. */
      readonly failoverLacking: boolean;
    }
  /** Another session still creates it. */
  | { readonly kind: 'unfinished' }
  /** Nobody creates it, and it has no position. */
  | { readonly kind: 'unplaced' }
  /** The copy of a primary's slot, on a standby that is not promoted. */
  | { readonly kind: 'unpromoted' }
  | { readonly kind: 'halt'; readonly code: HaltCode; readonly detail: string };

/** Reads the slot's row as JSON, so that one query serves every version of the view. */
export async function readSlot(
  session: CommandSession,
  slotName: string,
): Promise<SlotRow | null> {
  const rows = await session.query(
    'select pg_catalog.to_jsonb(s) as slot from pg_catalog.pg_replication_slots s' +
      ` where s.slot_name = ${quoteLiteral(slotName)}`,
  );
  const text = rows[0]?.['slot'];
  if (text === undefined || text === null) return null;
  const row: unknown = JSON.parse(text);
  return isSlotRow(row) ? row : null;
}

/** Up to where the server may forget, as it knows it; `null` where there is no such position, or no slot. */
export async function readConfirmedFlush(
  session: CommandSession,
  slotName: string,
): Promise<Lsn | null> {
  const row = await readSlot(session, slotName);
  return parseLsn(row?.confirmed_flush_lsn ?? '');
}

/** The view's columns are what they are: only that it is a row has to be seen. */
function isSlotRow(value: unknown): value is SlotRow {
  return typeof value === 'object' && value !== null && 'slot_type' in value;
}

/** What a slot has to fit. */
export interface SlotPlace {
  readonly database: string;
  readonly plugin: string;
  /** The server is a standby that is not promoted. */
  readonly inRecovery: boolean;
}

/** Decides, without I/O, what a slot is good for in this database with this output plugin. */
export function judgeSlot(row: SlotRow | null, place: SlotPlace): SlotVerdict {
  if (row === null) return { kind: 'absent' };
  // First, because such a copy is temporary at times. After the promotion the column says nothing any more.
  if (row.synced === true && place.inRecovery) return { kind: 'unpromoted' };
  const misfit = findMisfit(row, place);
  if (misfit !== null)
    return { kind: 'halt', code: 'slot/not_usable', detail: misfit };
  const invalidation = findInvalidation(row);
  if (invalidation !== null) {
    return {
      kind: 'halt',
      code: invalidation,
      detail: 'the server has invalidated the slot',
    };
  }
  const confirmedFlush = parseLsn(row.confirmed_flush_lsn ?? '');
  if (confirmedFlush === null)
    return { kind: row.active === true ? 'unfinished' : 'unplaced' };
  return {
    kind: 'usable',
    confirmedFlush,
    failoverLacking: row.failover === false && row.active === false,
  };
}

function findMisfit(
  row: SlotRow,
  { database, plugin }: SlotPlace,
): string | null {
  if (row.slot_type !== 'logical') return 'the slot is not logical';
  if (row.database !== database) return 'the slot belongs to another database';
  if (row.plugin !== plugin)
    return `the slot uses another output plugin, ${row.plugin}`;
  if (row.temporary === true) return 'the slot is temporary';
  if (row.two_phase === true) return 'the slot decodes prepared transactions';
  return null;
}

/**
 * The reason comes first: whatever it is, `wal_status` then says `lost`. PostgreSQL 16 gives none, and says `conflicting` of a slot
 * that lost WAL too; that one has no `restart_lsn` any more.
 */
function findInvalidation(row: SlotRow): HaltCode | null {
  switch (row.invalidation_reason ?? '') {
    case '':
      break;
    case 'wal_removed':
      return 'slot_invalidated/wal_lost';
    case 'rows_removed':
      return 'slot_invalidated/rows_removed';
    case 'wal_level_insufficient':
      return 'slot_invalidated/wal_level_insufficient';
    default:
      return 'slot_invalidated/invalidated';
  }
  if (row.conflicting === true && typeof row.restart_lsn === 'string')
    return 'slot_invalidated/conflict';
  return row.wal_status === 'lost' ? 'slot_invalidated/wal_lost' : null;
}

/** How a slot is created. */
export interface SlotCreation {
  readonly plugin: string;
  /** Whether it is synchronized to standbys, which PostgreSQL 17 knows. */
  readonly failover: boolean;
  /** Whether a snapshot of its consistent point is exported, for others to read what was committed before. */
  readonly exportSnapshot: boolean;
}

/** A slot that was created. */
export interface CreatedSlot {
  /** The boundary from which on it streams. */
  readonly consistentPoint: Lsn;
  /** Of the exported snapshot, which can be adopted until the session runs another command; `null` without one. */
  readonly snapshotName: string | null;
}

/**
 * Creates a durable slot.
 *
 * @see {@link https://www.postgresql.org/docs/current/protocol-replication.html#PROTOCOL-REPLICATION-CREATE-REPLICATION-SLOT | CREATE_REPLICATION_SLOT}
 */
export async function createSlot(
  session: CommandSession,
  slotName: string,
  { plugin, failover, exportSnapshot }: SlotCreation,
): Promise<CreatedSlot> {
  const options = `SNAPSHOT '${exportSnapshot ? 'export' : 'nothing'}'${failover ? ', FAILOVER true' : ''}`;
  const [row] = await session.queryPatiently(
    `CREATE_REPLICATION_SLOT ${quoteIdentifier(slotName, 'slotName')} LOGICAL ${plugin} (${options})`,
  );
  const consistentPoint = parseLsn(row?.['consistent_point'] ?? '');
  if (consistentPoint === null)
    throw new Error('CREATE_REPLICATION_SLOT returned no consistent point');
  return { consistentPoint, snapshotName: row?.['snapshot_name'] ?? null };
}

/**
 * Has a slot synchronized to standbys from now on.
 *
 * @see {@link https://www.postgresql.org/docs/current/protocol-replication.html#PROTOCOL-REPLICATION-ALTER-REPLICATION-SLOT | ALTER_REPLICATION_SLOT}
 */
export async function enableFailover(
  session: CommandSession,
  slotName: string,
): Promise<void> {
  await session.query(
    `ALTER_REPLICATION_SLOT ${quoteIdentifier(slotName, 'slotName')} (FAILOVER true)`,
  );
}

/** Drops a slot that nobody streams from. */
export async function dropSlot(
  session: CommandSession,
  slotName: string,
): Promise<void> {
  // Sessions of a WAL sender take no parameters.
  await session.query(
    `select pg_catalog.pg_drop_replication_slot(${quoteLiteral(slotName)})`,
  );
}
