import type { CatalogTable, Relation } from '../../model/relation.js';

/**
 * A table with the columns that its shape had when it was stored with the checkpoint: the stream goes on from there, and may still have columns that
 * were dropped or renamed since.
 *
 * @param stored - `null` when no shape was stored
 */
export function seenLast(
  table: CatalogTable,
  stored: Relation | null,
): CatalogTable {
  return stored === null ? table : { ...table, columns: stored.columns };
}
