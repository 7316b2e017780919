import { InsertChange } from '../../lib/engine/assemble/changes.js';

const relation = {
  oid: 1,
  schema: 'public',
  table: 't',
  name: 'public.t',
  replicaIdentity: 'default',
  columns: [],
} as const;

/** A change that no server sent, at this place of its transaction. */
export function madeChange(ordinal: number): InsertChange {
  return new InsertChange(ordinal, 1n, relation, {});
}
