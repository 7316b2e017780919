import type { CommandSession } from './session.js';
import { slotHeldError } from './slot-holder.js';
import { lockKey, lockRows, LOCK_CLASS } from './slot-lock-key.js';

const TERMINATE_TIMEOUT_MS = 5_000;

/**
 * Takes the slot for this session before it is looked at, or says who has it. A slot is not active while it is created,
 * so that alone would not tell two instances apart that start at the same time. The lock is freed with the session.
 *
 * @throws {SlotHeldError} when another session has it
 * @see {@link https://www.postgresql.org/docs/current/explicit-locking.html#ADVISORY-LOCKS | Advisory locks}
 */
export async function claimSlot(
  session: CommandSession,
  slotName: string,
): Promise<void> {
  const [row] = await session.query(
    // Quoted, or the lowest of all keys would be no int4.
    `select pg_catalog.pg_try_advisory_lock(${LOCK_CLASS}, '${lockKey(slotName)}'::pg_catalog.int4) as claimed`,
  );
  if (row?.['claimed'] !== 't') throw await slotHeldError(session, slotName);
}

/**
 * Ends the session with this process id, if it is the one that has claimed the slot, and waits for that. What it had begun to
 * create is gone with it.
 */
export async function terminateClaimant(
  session: CommandSession,
  slotName: string,
  pid: string,
): Promise<void> {
  await session.query(
    `select pg_catalog.pg_terminate_backend(pid, ${TERMINATE_TIMEOUT_MS}) from pg_catalog.pg_locks` +
      ` where ${lockRows(slotName)} and pid = $1`,
    [pid],
  );
}
