import { NAMED_BY_SAMPLES } from './every-type.js';
import { createNode } from './plugin-frames.js';
import type { TestDatabase } from './test-database.js';
import { builtinTypes, userTypes } from './typed-tables.js';

/*
 * What the three plugins are compared by. Left out is what no two of them show alike:
 *
 * - updates and deletes of tables whose identity is FULL without a primary key: pglogical takes such tables into sets of inserts alone;
 * - a column that is dropped, a type that is altered: each plugin shows it in its own way, and at its own time.
 */

const BUILTIN = builtinTypes('m');
const USER = userTypes('u');

/** As SQL has it: commas, dots, quotes, backslashes, blanks, `*`, and names of properties that objects have. */
const ODD = String.raw`"схема"."Größe, ""a"".b\c😀*"`;

/** Tables of which every change is captured. All have a primary key, or pglogical refuses them. */
const TABLES = [
  [BUILTIN.table, 'm'],
  [USER.table, 'u'],
  [
    `create table by_default(id int, part text, v text, n numeric(7, 2), big text, primary key (part, id));
     alter table by_default alter column big set storage external`,
    'by_default',
  ],
  [
    `create table by_index(id int primary key, u text not null, v text, big bytea); create unique index by_u on by_index(u);
     alter table by_index replica identity using index by_u; alter table by_index alter column big set storage external`,
    'by_index',
  ],
  [
    `create table by_row(id int primary key, v text, big text, flag bool);
     alter table by_row alter column big set storage external`,
    'by_row',
  ],
  [
    `create table large_key(id text primary key, v int); alter table large_key alter column id set storage external`,
    'large_key',
  ],
  [
    `create table holes(gone int, id int primary key, also_gone text, v text); alter table holes drop column gone, drop column also_gone`,
    'holes',
  ],
  [
    `create table computed(id int primary key, twice int generated always as (id * 2) stored, v text)`,
    'computed',
  ],
  ['create table growing(id int primary key, v text)', 'growing'],
  ['create table bulk(id int primary key, v text)', 'bulk'],
  [
    'create table parts(id int primary key, v text) partition by range (id); create table low partition of parts for values from (0) to (10)',
    'low',
  ],
  ['create table high partition of parts for values from (10) to (20)', 'high'],
  ['create table alone(id serial primary key)', 'alone'],
  ['create table referred(id int primary key)', 'referred'],
  [
    'create table referring(id int primary key, other int references referred)',
    'referring',
  ],
  [
    `create schema "схема"; create table ${ODD}("Ключ, ""k""" int primary key, "a.b\\c*" text, "__proto__" text, "constructor" text)`,
    ODD,
  ],
] as const;

/** Tables of which only inserts are captured. */
const INSERT_ONLY = [
  ['create table without_key(v text)', 'without_key'],
  [
    'create table by_nothing(id int primary key, v text); alter table by_nothing replica identity nothing',
    'by_nothing',
  ],
  [
    'create table whole_row(v text); alter table whole_row replica identity full',
    'whole_row',
  ],
  ['create table no_columns()', 'no_columns'],
] as const;

/** The options `tables` of wal2json. */
export const CAPTURED = [...TABLES, ...INSERT_ONLY].map(([, name]) =>
  name === ODD
    ? (['схема', 'Größe, "a".b\\c😀*'] as const)
    : (['public', name] as const),
);

/** Statements that run one by one on one session. */
export const STATEMENTS: readonly string[] = [
  BUILTIN.insert,
  USER.insert,
  // null, '', unchanged TOAST, TOAST that goes and comes, key changes, deletes
  `insert into by_default values (1, 'a', null, 1.50, repeat('x', 2100)), (2, 'a', '', null, null)`,
  `insert into by_default values (3, 'b', E'tab\\t newline\\n "quoted" back\\\\slash \\u0001\\u007f\\u2028é😀', 'NaN', '{"not": "json"}')`,
  `update by_default set v = 'changed' where id = 1`,
  `update by_default set id = 4 where id = 1`,
  `update by_default set part = 'c', big = null where id = 4`,
  `update by_default set big = repeat('y', 2100), n = null where id = 4`,
  `update by_default set id = id`,
  `delete from by_default where id < 4`,
  `insert into by_index values (1, 'u', 'v', decode(repeat('5c00ff', 1000), 'hex')), (2, 'U', null, '')`,
  `update by_index set v = 'w' where id = 1`,
  `update by_index set u = 'u2' where id = 1`,
  `update by_index set id = 9 where id = 1`,
  `delete from by_index`,
  `insert into by_row values (1, null, repeat('z', 2100), true), (2, '', 'z', null)`,
  `update by_row set v = 'b' where id = 1`,
  `update by_row set id = 3, flag = false where id = 1`,
  `update by_row set big = null where id = 3`,
  `delete from by_row`,
  `insert into large_key values (repeat('k', 2100), 1)`,
  `update large_key set v = 2`,
  `update large_key set id = repeat('l', 2100)`,
  `delete from large_key`,
  // only inserts of these are captured
  `insert into without_key values ('v'), (null)`,
  `insert into by_nothing values (1, 'v')`,
  `update by_nothing set v = 'w'`,
  `delete from by_nothing`,
  `insert into whole_row values ('v')`,
  `insert into no_columns default values`,
  // columns and names
  `insert into holes values (1, 'v')`,
  `update holes set v = null`,
  `insert into computed(id, v) values (1, 'v')`,
  `update computed set v = 'w'`,
  `update computed set id = 2`,
  `insert into ${ODD} values (1, 'a', 'proto', 'constructor')`,
  `update ${ODD} set "__proto__" = null, "Ключ, ""k""" = 2`,
  // a column is added between transactions, and within one
  `insert into growing values (1, 'a')`,
  `alter table growing add column more varchar(10) default 'm', add column amount numeric(5, 1)`,
  `insert into growing values (2, 'b', 'n', 1.5)`,
  `update growing set more = null where id = 1`,
  `begin; insert into growing values (3, 'c'); alter table growing add column moods s2.mood[]; insert into growing values (4, 'd', null, null, '{sad}'); commit`,
  `delete from growing`,
  // partitions come under their own names
  `insert into parts values (1, 'a'), (11, 'b')`,
  `update parts set id = 12 where id = 1`,
  // savepoints, many tables and many rows in one transaction, a prepared one, an empty one
  `begin; insert into alone default values; savepoint s; insert into alone default values; rollback to s; savepoint s; insert into alone default values; commit`,
  `begin; insert into alone default values; insert into referred values (1); insert into referring values (1, 1); update alone set id = id + 10; commit`,
  `insert into bulk select id, repeat(md5(id::text), 100) from generate_series(1, 1500) id`,
  `begin; insert into referred values (2); prepare transaction 'prepared'`,
  `commit prepared 'prepared'`,
  `create table nobody_captures(id int)`,
  `insert into nobody_captures values (1)`,
  // a transaction that another server began
  `select pg_replication_origin_create('elsewhere')`,
  `select pg_replication_origin_session_setup('elsewhere')`,
  `begin; select pg_replication_origin_xact_setup('16/B374D848', '2026-01-02 03:04:05.123456+00'); insert into referred values (3); commit`,
  `select pg_replication_origin_session_reset()`,
  `select pg_replication_origin_drop('elsewhere')`,
  // truncations
  `truncate alone`,
  `begin; insert into alone default values; truncate alone; insert into alone default values; commit`,
  `truncate alone restart identity`,
  `truncate referred cascade`,
  `truncate referring, by_default`,
  // messages in a transaction, in one of their own, and outside
  `begin; select pg_logical_emit_message(true, 'pre"fix', 'in'); insert into referred values (4); select pg_logical_emit_message(false, 'prefix', 'out "of" é'); insert into referred values (5); select pg_logical_emit_message(true, '', ''); commit`,
  `select pg_logical_emit_message(true, 'only', 'a message')`,
  `insert into referred values (6)`,
];

/** Creates the tables, two publications and two replication sets of all of them. */
export async function createTables(source: TestDatabase): Promise<void> {
  await source.query(NAMED_BY_SAMPLES);
  for (const [table] of [...TABLES, ...INSERT_ONLY]) await source.query(table);
  const names = TABLES.map(([, name]) => name);
  const insertOnly = INSERT_ONLY.map(([, name]) => name);
  await source.query(
    `create publication changes for table ${names.join(', ')};
     create publication inserts for table ${insertOnly.join(', ')} with (publish = 'insert')`,
  );
  await createNode(source);
  await addTo('default', names, source);
  await addTo('default_insert_only', insertOnly, source);
  // pglogical wants an index when it takes a table, and not afterwards.
  await source.query('alter table by_row replica identity full');
}

async function addTo(
  set: string,
  tables: readonly string[],
  source: TestDatabase,
): Promise<void> {
  for (const table of tables)
    await source.query('select pglogical.replication_set_add_table($1, $2)', [
      set,
      table,
    ]);
}
