import type { CatalogTable, Column, TableShape } from '../../model/relation.js';
import { isFixedWidth } from './fixed-width.js';
import type { RowDocument } from './row-reader.js';
import { shownIdentity } from './shown-identity.js';
import type { ColumnHeader } from './tuple-reader.js';
import { builtinModifier, likelyModifier } from './type-modifier.js';

type ColumnShape = Omit<Column, 'type'>;

/**
 * The shape of a table that a document shows. The plugin announces none, so it is the known shape, changed by what the document proves:
 *
 * - a column that is not known was added;
 * - one that an insert lacks was dropped, for an insert has all of them;
 * - one of a fixed width that an update lacks was dropped, any other may be an unchanged TOASTed value;
 * - one that an old row under the full identity lacks was dropped;
 * - a type or modifier that differs was changed;
 * - an old row without the columns that identify it has another identity.
 *
 * @param catalog - the table as the catalog had it last, which may be of before or after the document
 * @returns `known` itself when nothing differs
 */
export function shownShape(
  known: TableShape,
  row: RowDocument,
  catalog: CatalogTable | null,
): TableShape {
  const isKnown = new Set(known.columns.map(({ name }) => name));
  const isGenerated = new Set(catalog?.generated);
  const isColumn = ({ name }: ColumnHeader): boolean =>
    isKnown.has(name) || !isGenerated.has(name);
  const oldRow = row.identity?.headers.filter(isColumn) ?? null;
  const newRow = row.columns?.headers.filter(isColumn) ?? null;
  const shown = new Map(
    [...(newRow ?? []), ...(oldRow ?? [])].map((header) => [
      header.name,
      header,
    ]),
  );
  const identity = shownIdentity(known, oldRow, newRow, row.primaryKey);
  const isFull = identity.kind === 'full';
  const columns = known.columns.flatMap((column) => {
    const header = shown.get(column.name);
    if (header !== undefined) return [retyped(column, header, catalog)];
    return lackIsDrop(column, row, isFull) ? [] : [column];
  });
  for (const header of shown.values()) {
    if (!isKnown.has(header.name))
      columns.push(addedColumn(header, known, catalog));
  }
  const keyed = columns.map((column) => {
    const key = isFull || (identity.keys?.has(column.name) ?? column.key);
    return key === column.key ? column : { ...column, key };
  });
  return identity.kind === known.replicaIdentity &&
    keyed.length === known.columns.length &&
    keyed.every((column, index) => column === known.columns[index])
    ? known
    : { ...known, replicaIdentity: identity.kind, columns: keyed };
}

/** Whether a column that the document does not show was dropped. */
function lackIsDrop(
  { typeOid }: ColumnShape,
  { action }: RowDocument,
  isFull: boolean,
): boolean {
  switch (action) {
    case 'insert':
      return true;
    case 'update':
      return isFull || isFixedWidth(typeOid);
    case 'delete':
      return isFull;
    case 'truncate':
      return false;
  }
}

function retyped(
  column: ColumnShape,
  { typeOid, type }: ColumnHeader,
  catalog: CatalogTable | null,
): ColumnShape {
  const typeModifier =
    typeOid === column.typeOid
      ? (builtinModifier(typeOid, type) ?? column.typeModifier)
      : modifierOf(column.name, typeOid, type, catalog);
  return typeOid === column.typeOid && typeModifier === column.typeModifier
    ? column
    : { ...column, typeOid, typeModifier };
}

function addedColumn(
  { name, typeOid, type }: ColumnHeader,
  { replicaIdentity }: TableShape,
  catalog: CatalogTable | null,
): ColumnShape {
  const column = catalog?.columns.find((candidate) => candidate.name === name);
  return {
    name,
    typeOid,
    typeModifier: modifierOf(name, typeOid, type, catalog),
    // Under the full identity the catalog has every column for a key.
    key: catalog?.replicaIdentity === replicaIdentity && (column?.key ?? false),
  };
}

/** The text of a type tells the modifier of built-in types only; for others the catalog is asked, if it means the same column. */
function modifierOf(
  name: string,
  typeOid: number,
  type: string,
  catalog: CatalogTable | null,
): number {
  const column = catalog?.columns.find((candidate) => candidate.name === name);
  return (
    builtinModifier(typeOid, type) ??
    (column?.typeOid === typeOid
      ? column.typeModifier
      : likelyModifier(typeOid, type))
  );
}
