import type { CatalogTable, Relation } from '../../model/relation.js';

/**
 * A table without the columns that it did not have yet when its shape was stored with the checkpoint. The stream goes on from there: an update that
 * lacks a column which the table is still to get looks like one that left its TOASTed value alone, and an insert after it like one after a drop.
 * Each column counts from the first row that has it.
 *
 * @param stored - `null` when no shape was stored
 */
export function seenBefore(
  table: CatalogTable,
  stored: Relation | null,
): CatalogTable {
  if (stored === null) return table;
  const names = new Set(stored.columns.map(({ name }) => name));
  return {
    ...table,
    columns: table.columns.filter(({ name }) => names.has(name)),
  };
}
