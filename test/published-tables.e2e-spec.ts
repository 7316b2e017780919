import { describe, expect, it } from 'vitest';
import type { Change } from '../lib/engine/model/change.js';
import type { AnySnapshotRow } from '../lib/engine/model/snapshot.js';
import { capture } from './support/capture.js';
import { changesIn } from './support/delivered.js';
import { currentLsn } from './support/logical-slot.js';
import { snapshotRows } from './support/snapshot-rows.js';
import { useServer } from './support/suite.js';

const suite = useServer();

interface Combination {
  readonly schema: string;
  readonly insert: string;
  /** Rows that come both ways, as {@link line} writes them; in no order. */
  readonly rows: readonly string[];
  /** @default ['p'] */
  readonly publications?: readonly string[];
  /** First major version that knows it. @default 15 */
  readonly since?: number;
}

type RowImage = Pick<
  AnySnapshotRow,
  'relation' | 'schema' | 'table' | 'columns' | 'record'
>;

function image(row: RowImage): RowImage {
  const { relation, schema, table, columns, record } = row;
  return { relation, schema, table, columns, record };
}

function insertedRows(change: Change): RowImage[] {
  return change.op === 'insert' ? [image(change)] : [];
}

function line({ relation, record }: RowImage): string {
  return `${relation} ${JSON.stringify(record)}`;
}

function ordered(rows: readonly RowImage[]): RowImage[] {
  return rows.toSorted((a, b) => line(a).localeCompare(line(b)));
}

/** Reads the same rows by the stream and by a snapshot. */
async function expectSame(combination: Combination): Promise<void> {
  const { schema, insert, rows, publications = ['p'] } = combination;
  const source = await suite.database();
  await source.query(schema);
  const { pipeline, applied } = capture(source, {
    target: source,
    checkpoint: { kind: 'reader', read: async () => null },
    publication: [...publications],
  });
  pipeline.start();
  await pipeline.whenStreaming();
  await source.query(insert);
  await pipeline.caughtUp(await currentLsn(source));
  const streamed = changesIn(applied).flatMap(insertedRows);
  const copied = (await snapshotRows(source.url, publications)).map(image);
  expect(ordered(copied)).toEqual(ordered(streamed));
  expect(copied.map(line).toSorted()).toEqual(rows.toSorted());
}

/** Runs each combination that the server knows. */
function same(combinations: Readonly<Record<string, Combination>>): void {
  it.each(Object.entries(combinations))('%s', async (_, combination) => {
    const { since = 15 } = combination;
    if (suite.server.majorVersion >= since) await expectSame(combination);
  });
}

const ROOT = `create table root(id int, v text) partition by list (id);
  create table a partition of root for values in (1);
  create table mid partition of root for values in (2, 3) partition by list (id);
  create table b partition of mid for values in (2);
  create table c partition of mid for values in (3);`;
const INTO_ROOT = `insert into root values (1, 'x'), (2, 'y'), (3, 'z')`;
const THROUGH = 'with (publish_via_partition_root = true)';
const AS_LEAVES = [
  'public.a {"id":1,"v":"x"}',
  'public.b {"id":2,"v":"y"}',
  'public.c {"id":3,"v":"z"}',
];
const AS_ROOT = [
  'public.root {"id":1,"v":"x"}',
  'public.root {"id":2,"v":"y"}',
  'public.root {"id":3,"v":"z"}',
];

describe('a snapshot reads the rows that are streamed of partitions', () => {
  same({
    'as leaves': {
      schema: `${ROOT} create publication p for table root`,
      insert: INTO_ROOT,
      rows: AS_LEAVES,
    },
    'through the root (P01)': {
      schema: `${ROOT} create publication p for table root ${THROUGH}`,
      insert: INTO_ROOT,
      rows: AS_ROOT,
    },
    'through the root that one publication has among all tables, whatever another says of a leaf':
      {
        schema: `${ROOT} create publication p for all tables ${THROUGH};
        create publication q for table a where (id > 5)`,
        publications: ['p', 'q'],
        insert: INTO_ROOT,
        rows: AS_ROOT,
      },
    'through the root by the filter of the root alone': {
      schema: `${ROOT} create publication p for table root where (id > 1) ${THROUGH};
        create publication q for table a, b where (id = 17)`,
      publications: ['q', 'p'],
      insert: INTO_ROOT,
      rows: AS_ROOT.slice(1),
    },
    'through the highest of several roots': {
      schema: `${ROOT} create publication p for table mid where (id = 17) ${THROUGH};
        create publication q for table root ${THROUGH}`,
      publications: ['p', 'q'],
      insert: INTO_ROOT,
      rows: AS_ROOT,
    },
    'through a root in the middle': {
      schema: `${ROOT} create publication p for table mid ${THROUGH}`,
      insert: INTO_ROOT,
      rows: ['public.mid {"id":2,"v":"y"}', 'public.mid {"id":3,"v":"z"}'],
    },
    'through a root in the middle, beside leaves': {
      schema: `${ROOT} create publication p for table mid ${THROUGH}; create publication q for table root`,
      publications: ['p', 'q'],
      insert: INTO_ROOT,
      rows: [
        'public.a {"id":1,"v":"x"}',
        'public.mid {"id":2,"v":"y"}',
        'public.mid {"id":3,"v":"z"}',
      ],
    },
    'as leaves whose filter a publication of the root lifts': {
      schema: `${ROOT} create publication p for table root; create publication q for table a where (id > 5)`,
      publications: ['p', 'q'],
      insert: INTO_ROOT,
      rows: AS_LEAVES,
    },
    'as leaves, each by its own filter and columns': {
      schema: `${ROOT} create publication p for table a (v), b where (id > 5), c where (v = 'z')`,
      insert: INTO_ROOT,
      rows: ['public.a {"v":"x"}', 'public.c {"id":3,"v":"z"}'],
    },
    'by the schema that one of them is in': {
      schema: `create schema s; ${ROOT} alter table b set schema s; alter table mid set schema s;
        create publication p for tables in schema s ${THROUGH}`,
      insert: INTO_ROOT,
      rows: ['s.mid {"id":2,"v":"y"}', 's.mid {"id":3,"v":"z"}'],
    },
    'through a root by its own columns, whatever the order in a partition': {
      schema: `create table root(id int, v text, w int) partition by list (id);
        create table a(w int, gone int, v text, id int); alter table a drop column gone;
        alter table root attach partition a for values in (1);
        create publication p for table root (w, id) ${THROUGH}`,
      insert: `insert into root values (1, 'x', 7)`,
      rows: ['public.root {"id":1,"w":7}'],
    },
    'without partitions that are not in the WAL': {
      schema: `create extension postgres_fdw; create server elsewhere foreign data wrapper postgres_fdw;
        create table plain(id int); ${ROOT}
        create unlogged table u partition of root for values in (4);
        create foreign table f partition of mid for values in (5) server elsewhere;
        create publication p for table mid; create publication q for table root`,
      publications: ['p', 'q'],
      insert: `${INTO_ROOT}, (4, 'unlogged')`,
      rows: AS_LEAVES,
    },
    'through a root without partitions that are not in the WAL': {
      schema: `${ROOT} create unlogged table u partition of root for values in (4);
        create publication p for table root where (id <> 2 or v = 'y') ${THROUGH}`,
      insert: `${INTO_ROOT}, (4, 'unlogged')`,
      rows: AS_ROOT,
    },
  });
});

describe('a snapshot reads the rows that are streamed by row filters', () => {
  const schema = 'create table t(id int primary key, v text);';
  const insert = `insert into t select g, 'v' || g from generate_series(1, 5) g`;
  const row = (id: number) => `public.t {"id":${id},"v":"v${id}"}`;
  same({
    'of one publication': {
      schema: `${schema} create publication p for table t where (id < 3 or v = 'v5')`,
      insert,
      rows: [row(1), row(2), row(5)],
    },
    'of several, if any admits them': {
      schema: `${schema} create publication p for table t where (id < 2);
        create publication q for table t where (v = 'v4'); create publication r for table t where (id < 2)`,
      publications: ['p', 'q', 'r'],
      insert,
      rows: [row(1), row(4)],
    },
    'unless another publication has none': {
      schema: `${schema} create publication p for table t where (id < 2); create publication q for table t`,
      publications: ['p', 'q'],
      insert,
      rows: [1, 2, 3, 4, 5].map(row),
    },
    'unless another publication has all tables': {
      schema: `${schema} create publication p for table t where (id < 2); create publication q for all tables`,
      publications: ['p', 'q'],
      insert,
      rows: [1, 2, 3, 4, 5].map(row),
    },
    'unless another publication has the schema': {
      schema: `${schema} create publication p for table t where (id < 2);
        create publication q for tables in schema public`,
      publications: ['p', 'q'],
      insert,
      rows: [1, 2, 3, 4, 5].map(row),
    },
    'that are null for a row': {
      schema: `${schema} create publication p for table t where (v <> 'v1') with (publish = 'insert')`,
      insert: `insert into t values (1, 'v1'), (2, null), (3, 'v3')`,
      rows: [row(3)],
    },
    'over columns that are not published': {
      schema: `${schema} create publication p for table t (id) where (v <> 'v1') with (publish = 'insert')`,
      insert,
      rows: [2, 3, 4, 5].map((id) => `public.t {"id":${id}}`),
    },
    'over names that only a search path would find elsewhere': {
      schema: `${schema} create schema shadow;
        create function shadow.never(int, int) returns boolean immutable language sql as 'select false';
        create operator shadow.< (leftarg = int, rightarg = int, function = shadow.never);
        do $$ begin execute format('alter database %I set search_path = shadow, pg_catalog, public', current_database()); end $$;
        create publication p for table t where (id < 3)`,
      insert,
      rows: [row(1), row(2)],
    },
  });
});

describe('a snapshot reads the columns that are streamed', () => {
  same({
    'by a list, whatever its order (R02)': {
      schema: `create table t(id int primary key, a int, secret text, b int); create publication p for table t (b, id);
        create publication q for table t (id, b)`,
      publications: ['p', 'q'],
      insert: `insert into t values (1, 2, 'planted-secret', 3)`,
      rows: ['public.t {"id":1,"b":3}'],
    },
    'without those that were dropped': {
      schema: `create table t(gone int, id int primary key, a int, away text); alter table t drop column gone, drop column away;
        create publication p for table t`,
      insert: 'insert into t values (1, 2)',
      rows: ['public.t {"id":1,"a":2}'],
    },
    'where there are none': {
      schema: 'create table t(); create publication p for table t',
      insert: 'insert into t default values; insert into t default values',
      rows: ['public.t {}', 'public.t {}'],
    },
    'without generated ones (R01)': {
      schema: `create table t(id int primary key, g int generated always as (id * 2) stored, z int);
        create table u(id int primary key, g int generated always as (id * 2) stored, z int);
        create publication p for table t; create publication q for table u (z, id)`,
      publications: ['p', 'q'],
      insert:
        'insert into t values (1, default, 3); insert into u values (1, default, 3)',
      rows: ['public.t {"id":1,"z":3}', 'public.u {"id":1,"z":3}'],
    },
    'with stored generated ones, where a publication has them (R01)': {
      since: 18,
      schema: `create table t(id int primary key, g int generated always as (id * 2) stored, v int generated always as (id * 3) virtual);
        create table u(id int primary key, g int generated always as (id * 2) stored);
        create publication p for table t with (publish_generated_columns = stored);
        create publication q for table u (id, g)`,
      publications: ['p', 'q'],
      insert: 'insert into t values (1); insert into u values (1)',
      rows: ['public.t {"id":1,"g":2}', 'public.u {"id":1,"g":2}'],
    },
    'without virtual ones (R01)': {
      since: 18,
      schema: `create table t(id int primary key, v int generated always as (id * 3) virtual); create publication p for table t`,
      insert: 'insert into t values (1)',
      rows: ['public.t {"id":1}'],
    },
    'by types with modifiers, domains and user types': {
      schema: `create schema s; create domain s.code as varchar(3); create type s.mood as enum ('sad'); create domain moods as s.mood[];
        create table t(a varchar(5) primary key, b numeric(4, 2), c s.code, d s.mood, e s.mood[], f moods, g information_schema.sql_identifier, h char(4), i bit(2), j interval(2));
        create publication p for table t`,
      insert: `insert into t values ('abc', 1.5, 'xyz', 'sad', '{sad}', '{sad,null}', 'name', 'h', '10', '1.239 s')`,
      rows: [
        'public.t {"a":"abc","b":"1.50","c":"xyz","d":"sad","e":["sad"],"f":["sad",null],"g":"name","h":"h   ","i":"10","j":"00:00:01.24"}',
      ],
    },
  });
});

describe('a snapshot names the replica identity as the stream does', () => {
  same({
    'of keys, with their columns alone': {
      schema: `create table a(x int, y int, z int, w int, primary key (z, x) include (y));
        create table b(x int not null, y int not null, z int); create unique index b_key on b (y) include (x); alter table b replica identity using index b_key;
        create table c(x int primary key, y int); alter table c replica identity full;
        create table d(x int primary key, y int); alter table d replica identity nothing;
        create table e(x int primary key deferrable, y int); create table f(x int);
        create table g(x int, y int not null unique, primary key (x)); alter table g replica identity using index g_y_key;
        create publication p for all tables`,
      insert: `insert into a values (1, 2, 3, 4); insert into b values (1, 2, 3); insert into c values (1, 2); insert into d values (1, 2);
        insert into e values (1, 2); insert into f values (1); insert into g values (1, 2)`,
      rows: [
        'public.a {"x":1,"y":2,"z":3,"w":4}',
        'public.b {"x":1,"y":2,"z":3}',
        'public.c {"x":1,"y":2}',
        'public.d {"x":1,"y":2}',
        'public.e {"x":1,"y":2}',
        'public.f {"x":1}',
        'public.g {"x":1,"y":2}',
      ],
    },
    'of a partitioned table': {
      schema: `create table root(x int, y int, primary key (y, x)) partition by list (x); create table leaf partition of root for values in (1);
        alter table leaf replica identity full; create publication p for table root ${THROUGH}`,
      insert: 'insert into root values (1, 2)',
      rows: ['public.root {"x":1,"y":2}'],
    },
  });
});

describe('a snapshot reads the tables that are streamed', () => {
  same({
    'without those that inherit from them (P05)': {
      schema: `create schema _timescaledb_internal; create table metrics(ts timestamptz not null, v float8);
        create table _timescaledb_internal._hyper_1_1_chunk(check (ts >= '2026-01-01')) inherits (metrics);
        create publication p for table only metrics`,
      insert: `insert into metrics values ('2020-01-01Z', 1); insert into _timescaledb_internal._hyper_1_1_chunk values ('2026-02-01Z', 2)`,
      rows: ['public.metrics {"ts":"2020-01-01T00:00:00.000000Z","v":1}'],
    },
    'with those that inherit from them, under their own names (P05)': {
      schema: `create table metrics(id int); create table chunk() inherits (metrics); create publication p for table metrics`,
      insert: 'insert into metrics values (1); insert into chunk values (2)',
      rows: ['public.metrics {"id":1}', 'public.chunk {"id":2}'],
    },
    'whatever their names and those of their columns': {
      schema: `create schema "Odd ""s'chema\\"; create table "Odd ""s'chema\\"."t.a; ""b""'\\"
          ("__proto__" int, "Select" text, "a""b" int, "c'\\d" int, "1" int, constructor int, "é 😀" int, primary key ("Select", "__proto__"));
        create table "user"("order" int primary key);
        create publication "P ""q""" for table "Odd ""s'chema\\"."t.a; ""b""'\\" where ("Select" <> 'no' and "__proto__" < 9), "user"`,
      publications: ['P "q"'],
      insert: `insert into "Odd ""s'chema\\"."t.a; ""b""'\\" values (1, 'yes', 2, 3, 4, 5, 6), (1, 'no', 2, 3, 4, 5, 6); insert into "user" values (1)`,
      rows: [
        `Odd "s'chema\\.t.a; "b"'\\ {"1":4,"__proto__":1,"Select":"yes","a\\"b":2,"c'\\\\d":3,"constructor":5,"é 😀":6}`,
        'public.user {"order":1}',
      ],
    },
    'once, whatever the publications': {
      schema: `create table t(id int primary key); create schema s; create table s.u(id int primary key); create unlogged table lost(id int);
        create materialized view view as select * from t; create publication p for table t; create publication q for all tables; create publication r for tables in schema s`,
      publications: ['p', 'q', 'r'],
      insert:
        'insert into t values (1); insert into s.u values (2); insert into lost values (3)',
      rows: ['public.t {"id":1}', 's.u {"id":2}'],
    },
    'of no others': {
      schema: `create table t(id int primary key); create table other(id int primary key); create publication p for table t; create publication q for table other`,
      insert: 'insert into t values (1); insert into other values (2)',
      rows: ['public.t {"id":1}'],
    },
  });
});
