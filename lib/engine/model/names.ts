const SLOT_NAME = /^[a-z0-9_]{1,63}$/;
const LONGEST_NAME_BYTES = 63;

/**
 * Whether PostgreSQL accepts this name for a replication slot.
 *
 * @see {@link https://www.postgresql.org/docs/current/warm-standby.html#STREAMING-REPLICATION-SLOTS-MANIPULATION | Replication slots}
 */
export function isSlotName(name: string): boolean {
  return SLOT_NAME.test(name);
}

/**
 * Whether PostgreSQL accepts this name, quoted, for a table, schema or publication, without cutting it.
 *
 * @see {@link https://www.postgresql.org/docs/current/sql-syntax-lexical.html#SQL-SYNTAX-IDENTIFIERS | Identifiers}
 */
export function isName(name: string): boolean {
  return (
    name.length > 0 &&
    !name.includes('\0') &&
    Buffer.byteLength(name) <= LONGEST_NAME_BYTES
  );
}
