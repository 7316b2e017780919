/** The server gives the tables of its users OIDs from 16384 on, and those below 10000 to its own catalog, which no plugin streams. */
const FIRST_ASSIGNED = 10_000;

/**
 * The OID of a table that the catalog does not have, so that nobody can tell its own: always the same for one name, for a checkpoint keeps it,
 * and one that no table which is streamed can have. Two names that share one look like a table that was renamed, and halt.
 */
export function syntheticOid(schema: string, table: string): number {
  let hash = 0x811c9dc5; // FNV-1a
  for (const byte of Buffer.from(`${schema}\0${table}`)) {
    hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  }
  return 1 + (hash % (FIRST_ASSIGNED - 1));
}
