import { shownName } from '../model/shown-name.js';
import { lockRows } from './slot-lock-key.js';
import { quoteLiteral } from './identifiers.js';
import type { CommandSession } from './session.js';

/** The session that keeps others from a slot. */
export interface SlotHolder {
  readonly pid: number;
  /** As that session calls itself, made fit to be shown; empty when it does not. */
  readonly applicationName: string;
}

/** Another session streams from the slot, or creates it. */
export class SlotHeldError extends Error {
  override readonly name = 'SlotHeldError';

  constructor(
    /** `null` when it could not be found: it may have left meanwhile. */
    readonly holder: SlotHolder | null,
    /** Of the server, in milliseconds; `null` when it is not known. */
    readonly walSenderTimeoutMs: number | null,
  ) {
    super(`the slot is held by ${describe(holder)}`);
  }
}

function describe(holder: SlotHolder | null): string {
  if (holder === null) return 'another session';
  const { pid, applicationName } = holder;
  return applicationName === ''
    ? `process ${pid} of the server`
    : `process ${pid} of the server, application_name ${applicationName}`;
}

/**
 * Asks who holds a slot: whoever is active on it, or else whoever has the lock that instances of this library take.
 * Never fails: that the slot is held is known already.
 */
export async function slotHeldError(
  session: CommandSession,
  slotName: string,
): Promise<SlotHeldError> {
  try {
    const [row] = await session.query(holderQuery(slotName));
    const pid = Number(row?.['pid'] ?? Number.NaN);
    const timeout = Number(row?.['wal_sender_timeout'] ?? Number.NaN);
    return new SlotHeldError(
      Number.isNaN(pid)
        ? null
        : { pid, applicationName: shownName(row?.['application_name'] ?? '') },
      Number.isNaN(timeout) ? null : timeout,
    );
  } catch {
    return new SlotHeldError(null, null);
  }
}

function holderQuery(slotName: string): string {
  return (
    'select h.pid, a.application_name, t.setting as wal_sender_timeout' +
    ' from pg_catalog.pg_settings t' +
    ' left join lateral (' +
    'select active_pid as pid, 1 as rank from pg_catalog.pg_replication_slots' +
    ` where slot_name = ${quoteLiteral(slotName)} and active_pid is not null` +
    ' union all select pid, 2 from pg_catalog.pg_locks' +
    ` where ${lockRows(slotName)}` +
    ' order by rank limit 1) h on true' +
    ' left join pg_catalog.pg_stat_activity a on a.pid = h.pid' +
    " where t.name = 'wal_sender_timeout'"
  );
}
