import type { ReplicaIdentity, TableShape } from '../../model/relation.js';

interface Named {
  readonly name: string;
}

/** By what the old row of a document is identified. */
export interface ShownIdentity {
  readonly kind: ReplicaIdentity;
  /** Names of the key columns; `null` when they are as they were known. */
  readonly keys: ReadonlySet<string> | null;
}

/**
 * The replica identity that a document shows. It is the known one as long as the old row has what that needs: another that has more is seen when the
 * catalog is read again. Of a table of which nothing is known the primary key counts.
 *
 * @param oldRow - columns of the old row: all of them under the full identity, otherwise those of the key; `null` when there is none
 * @param newRow - columns of the new row, of which unchanged TOASTed values may be missing; `null` when there is none
 */
export function shownIdentity(
  known: TableShape,
  oldRow: readonly Named[] | null,
  newRow: readonly Named[] | null,
  primaryKey: readonly string[],
): ShownIdentity {
  const same = { kind: known.replicaIdentity, keys: null };
  if (oldRow === null)
    return known.columns.length === 0 && known.replicaIdentity === 'default'
      ? { kind: 'default', keys: new Set(primaryKey) }
      : same;
  const names = new Set(oldRow.map(({ name }) => name));
  const isPrimaryKey =
    primaryKey.length === names.size &&
    primaryKey.every((name) => names.has(name));
  const hasAll = (columns: readonly Named[]): boolean =>
    columns.every(({ name }) => names.has(name));
  if (known.replicaIdentity === 'full') {
    if (hasAll(newRow ?? known.columns)) return same;
    // A column that is missing from the old row of a delete was dropped, unless all but the primary key are.
    if (newRow === null && !isPrimaryKey) return same;
  } else {
    const keys = known.columns.filter(({ key }) => key);
    if (keys.length > 0 && hasAll(keys)) return same;
  }
  if (isPrimaryKey) return { kind: 'default', keys: names };
  const rest = newRow ?? known.columns;
  return rest.length > 0 && hasAll(rest)
    ? { kind: 'full', keys: null }
    : { kind: 'index', keys: names };
}
