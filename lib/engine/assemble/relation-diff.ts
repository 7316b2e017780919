import type { Column, Relation } from '../model/relation.js';
import type { SchemaChange } from '../model/schema-change.js';

/** What differs between two shapes of one table. */
export type RelationDifference = Pick<
  SchemaChange,
  'effect' | 'change' | 'detail'
>;

/** So many names are listed; of a table of 1,600 columns a detail would else be a page. */
const LISTED = 5;

/**
 * Compares two shapes of a table. The first difference counts: identity, dropped columns, types, key columns, added
 * columns. The order of the columns is none, since rows are read by name.
 */
export function relationDifference(
  before: Relation,
  after: Relation,
): RelationDifference | null {
  if (before.replicaIdentity !== after.replicaIdentity) {
    return destructive(
      'replica_identity_changed',
      `replica identity ${before.replicaIdentity} became ${after.replicaIdentity}`,
    );
  }
  const [were, are] = [byName(before), byName(after)];
  const dropped = before.columns.filter(({ name }) => !are.has(name));
  if (dropped.length > 0)
    return destructive('column_dropped', `dropped ${list(dropped)}`);
  const retyped = after.columns.flatMap((column) => {
    const old = were.get(column.name);
    return old === undefined || sameType(old, column) ? [] : [{ old, column }];
  });
  const [first] = retyped;
  if (first !== undefined) {
    const others = retyped.slice(1).map(({ column }) => column);
    return destructive(
      'type_changed',
      `${typeChange(first.old, first.column)}${others.length === 0 ? '' : `, and the type of ${list(others)}`}`,
    );
  }
  if (!sameKey(before, after)) {
    return destructive(
      'replica_identity_changed',
      `the key was ${list(keyOf(before))} and is ${list(keyOf(after))}`,
    );
  }
  const added = after.columns.filter(({ name }) => !were.has(name));
  if (added.length === 0) return null;
  return {
    effect: 'additive',
    change: 'column_added',
    detail: `added ${list(added)}`,
  };
}

function destructive(
  change: RelationDifference['change'],
  detail: string,
): RelationDifference {
  return { effect: 'destructive', change, detail };
}

function byName({ columns }: Relation): ReadonlyMap<string, Column> {
  return new Map(columns.map((column) => [column.name, column]));
}

/** By OID: both are of one database, and a type that was created anew is another one. */
function sameType(one: Column, other: Column): boolean {
  return (
    one.typeOid === other.typeOid && one.typeModifier === other.typeModifier
  );
}

/** Every column belongs to the full identity, so that a column which is added or dropped changes the key of none. */
function sameKey(before: Relation, after: Relation): boolean {
  if (after.replicaIdentity === 'full') return true;
  const old = new Set(keyOf(before).map(({ name }) => name));
  const now = keyOf(after);
  return now.length === old.size && now.every(({ name }) => old.has(name));
}

function keyOf({ columns }: Relation): readonly Column[] {
  return columns.filter(({ key }) => key);
}

function typeChange(old: Column, column: Column): string {
  // Types of one name are told apart by what else is known of them.
  const [from, to] =
    typeText(old) === typeText(column)
      ? [`${typeText(old)} (OID ${old.typeOid})`, `OID ${column.typeOid}`]
      : [typeText(old), typeText(column)];
  return `the type of ${quoted(column)} was ${from} and is ${to}`;
}

function typeText({ type, typeModifier }: Column): string {
  return typeModifier === -1 ? type : `${type} (modifier ${typeModifier})`;
}

function list(columns: readonly Column[]): string {
  if (columns.length === 0) return 'none';
  const names = columns.slice(0, LISTED).map(quoted).join(', ');
  const more = columns.length - LISTED;
  return more > 0 ? `${names} and ${more} more` : names;
}

function quoted({ name }: Column): string {
  return JSON.stringify(name);
}
