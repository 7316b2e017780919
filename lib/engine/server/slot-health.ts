import { parseLsn, type Lsn } from '../model/lsn.js';
import { shownName } from '../model/shown-name.js';
import { quoteLiteral } from './identifiers.js';
import type { CommandSession, TextRow } from './session.js';

/** The oldest running transaction that a slot still needs. */
export interface OldTransaction {
  readonly xid: string;
  readonly pid: number | null;
  readonly gid: string | null;
  readonly applicationName: string | null;
  /** `null` where the role may not see it. */
  readonly ageSeconds: number | null;
}

/** What the server says of a slot at one time. */
export interface SlotSample {
  readonly walEnd: Lsn;
  readonly slot: SlotSampleRow | null;
}

export interface SlotSampleRow {
  readonly active: boolean;
  readonly activePid: number | null;
  readonly waitsForStandby: boolean;
  readonly walStatus: string | null;
  readonly invalidationReason: string | null;
  readonly retainedWalBytes: number | null;
  readonly lagBytes: number | null;
  readonly safeWalBytes: number | null;
  /** What `safeWalBytes` is at most. */
  readonly keepBytes: number | null;
  readonly oldest: OldTransaction | null;
}

/**
 * Asks for all facts in one statement, so that they are of one time. On a standby the end of the WAL is what was replayed; which
 * function tells is chosen anew each time, because a standby may be promoted. Columns that a version lacks are read as null.
 */
export async function readSlotSample(
  session: CommandSession,
  slotName: string,
): Promise<SlotSample | null> {
  const [row] = await session.query(sampleSql(slotName));
  const walEnd = parseLsn(row?.['wal_end'] ?? '');
  if (row === undefined || walEnd === null) return null;
  return { walEnd, slot: slotOf(row) };
}

function sampleSql(slotName: string): string {
  return `
    select w.wal_end, s.slot_name, s.active, s.active_pid, s.wal_status, s.safe_wal_size,
      pg_catalog.to_jsonb(s) ->> 'invalidation_reason' as invalidation_reason,
      pg_catalog.to_jsonb(s) ->> 'conflicting' as conflicting,
      pg_catalog.pg_wal_lsn_diff(w.wal_end, s.restart_lsn) as retained,
      pg_catalog.pg_wal_lsn_diff(w.wal_end, s.confirmed_flush_lsn) as lag,
      (select b.wait_event from pg_catalog.pg_stat_activity b where b.pid = s.active_pid) as wait_event,
      (select pg_catalog.max(g.setting::pg_catalog.int8) * 1024 * 1024 from pg_catalog.pg_settings g
        where g.name in ('max_slot_wal_keep_size', 'wal_keep_size')) as keep_bytes,
      o.xid, o.pid, o.gid, o.application_name, pg_catalog.floor(o.age) as age
    from (
      select case when pg_catalog.pg_is_in_recovery() then pg_catalog.pg_last_wal_replay_lsn()
        else pg_catalog.pg_current_wal_lsn() end as wal_end
    ) w
    left join pg_catalog.pg_replication_slots s on s.slot_name = ${quoteLiteral(slotName)}
    left join lateral (
      select a.pid, null::pg_catalog.text as gid, a.application_name, a.backend_xid as xid,
        extract(epoch from pg_catalog.clock_timestamp() - a.xact_start) as age
      from pg_catalog.pg_stat_activity a where a.backend_xid is not null
      union all
      select null, p.gid, null, p.transaction, extract(epoch from pg_catalog.clock_timestamp() - p.prepared)
      from pg_catalog.pg_prepared_xacts p
    ) o on pg_catalog.age(o.xid) <= pg_catalog.age(s.catalog_xmin)
    order by pg_catalog.age(o.xid) desc nulls last limit 1`;
}

function slotOf(row: TextRow): SlotSampleRow | null {
  if (isNull(row['slot_name'])) return null;
  return {
    active: row['active'] === 't',
    activePid: numberOf(row['active_pid']),
    waitsForStandby: row['wait_event'] === 'WaitForStandbyConfirmation',
    walStatus: row['wal_status'] ?? null,
    invalidationReason: invalidationOf(row),
    retainedWalBytes: bytesOf(row['retained']),
    lagBytes: bytesOf(row['lag']),
    safeWalBytes: numberOf(row['safe_wal_size']),
    keepBytes: numberOf(row['keep_bytes']),
    oldest: oldestOf(row),
  };
}

function oldestOf(row: TextRow): OldTransaction | null {
  const { xid } = row;
  if (isNull(xid)) return null;
  return {
    xid,
    pid: numberOf(row['pid']),
    gid: nameOf(row['gid']),
    applicationName: nameOf(row['application_name']),
    ageSeconds: numberOf(row['age']),
  };
}

/** Servers before PostgreSQL 17 name no reason. */
function invalidationOf(row: TextRow): string | null {
  if (!isNull(row['invalidation_reason'])) return row['invalidation_reason'];
  if (row['conflicting'] === 'true') return 'conflicting';
  return row['wal_status'] === 'lost' ? 'wal_removed' : null;
}

function nameOf(name: string | null | undefined): string | null {
  return isNull(name) ? null : shownName(name);
}

function isNull(text: string | null | undefined): text is null | undefined {
  return text === null || text === undefined;
}

function numberOf(text: string | null | undefined): number | null {
  return isNull(text) ? null : Number(text);
}

/** A standby may replay what its slot has confirmed already. */
function bytesOf(text: string | null | undefined): number | null {
  const bytes = numberOf(text);
  return bytes === null ? null : Math.max(0, bytes);
}
