import type {
  SchemaChange,
  SchemaChangeKind,
} from '../../lib/engine/model/schema-change.js';
import type { Pipeline } from '../../lib/engine/pipeline.js';

/** A change of the table `t(id int primary key, a text, b text)` that no sink can be expected to follow. */
export interface Destruction {
  readonly change: SchemaChangeKind;
  /** Statements that make it. */
  readonly ddl: string;
  /** A row of the new shape, with the id 2. */
  readonly row: string;
  /** What the halt and the hook say. */
  readonly says: string | RegExp;
}

export const TABLE = 'create table t(id int primary key, a text, b text)';

export const DESTRUCTIONS: readonly Destruction[] = [
  {
    change: 'column_dropped',
    ddl: 'alter table t drop column b',
    row: `insert into t values (2, 'x')`,
    says: 'dropped "b"',
  },
  {
    // A column of the same name is another one: N10.
    change: 'type_changed',
    ddl: 'alter table t drop column b; alter table t add column b int',
    row: `insert into t values (2, 'x', 7)`,
    says: 'the type of "b" was text and is int4',
  },
  {
    change: 'type_changed',
    ddl: 'alter table t alter a type varchar(20)',
    row: `insert into t values (2, 'x', 'y')`,
    says: 'the type of "a" was text and is varchar (modifier 24)',
  },
  {
    change: 'replica_identity_changed',
    ddl: 'alter table t replica identity full',
    row: `insert into t values (2, 'x', 'y')`,
    says: 'replica identity default became full',
  },
  {
    change: 'replica_identity_changed',
    ddl: 'alter table t drop constraint t_pkey; alter table t add primary key (id, a)',
    row: `insert into t values (2, 'x', 'y')`,
    says: 'the key was "id" and is "id", "a"',
  },
  {
    change: 'table_renamed',
    ddl: 'alter table t rename to u',
    row: `insert into u values (2, 'x', 'y')`,
    says: 'is called public.u now',
  },
  {
    change: 'table_renamed',
    ddl: 'create schema other; alter table t set schema other',
    row: `insert into other.t values (2, 'x', 'y')`,
    says: 'is called other.t now',
  },
  {
    change: 'table_replaced',
    ddl: `drop table t; ${TABLE}`,
    row: `insert into t values (2, 'x', 'y')`,
    says: /^the table of this name had the OID \d+ and has \d+$/,
  },
];

/** The changes with which a pipeline goes on, as it tells them. */
export function toldBy(pipeline: Pipeline): SchemaChange[] {
  const told: SchemaChange[] = [];
  pipeline.on('schemaChange', ({ change }) => told.push(change));
  return told;
}
