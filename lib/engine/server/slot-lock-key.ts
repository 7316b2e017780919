import { createHash } from 'node:crypto';

/** First key of every advisory lock of the library: the bytes of `repl`. */
export const LOCK_CLASS = 0x7265706c;

/**
 * Second key: derived from the name of the slot, a signed integer of 32 bits. The server adds the database, to which an
 * advisory lock is local.
 */
export function lockKey(slotName: string): number {
  return createHash('sha256').update(slotName).digest().readInt32BE(0);
}

/** The condition by which `pg_locks` shows who has the lock of this slot. */
export function lockRows(slotName: string): string {
  return (
    "locktype = 'advisory' and granted and objsubid = 2" +
    ' and database = (select oid from pg_catalog.pg_database where datname = pg_catalog.current_database())' +
    // Object identifiers are unsigned, the parameters of the lock are not.
    ` and classid = ${LOCK_CLASS >>> 0} and objid = ${lockKey(slotName) >>> 0}`
  );
}
