import { describe, expect, it, onTestFinished } from 'vitest';
import { ConnectionFault } from '../lib/engine/model/connection-fault.js';
import type { PublishedTable } from '../lib/engine/server/published-table.js';
import { readPublishedTables } from '../lib/engine/server/published-tables.js';
import {
  type SessionTarget,
  withSqlSession,
} from '../lib/engine/server/session.js';
import {
  ChunkReader,
  type ReadableTable,
  type ReadChunk,
} from '../lib/engine/snapshot/incremental/chunk-reader.js';
import { readTableShapes } from '../lib/engine/snapshot/incremental/table-shape.js';
import { PAGE_BYTES, type RawRow } from '../lib/engine/snapshot/raw-row.js';
import { terminateBackend } from './support/logical-slot.js';
import { present } from './support/present.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer();
const NAME = 'chunk reader';

function targetOf(database: TestDatabase): SessionTarget {
  return {
    connection: database.url,
    applicationName: NAME,
    signal: new AbortController().signal,
  };
}

function readerOf(database: TestDatabase): ChunkReader {
  const reader = new ChunkReader(targetOf(database));
  onTestFinished(() => reader.close());
  return reader;
}

/** The tables of the publication `p`, as a backfill finds them. */
async function discover(
  database: TestDatabase,
): Promise<readonly ReadableTable[]> {
  return withSqlSession(targetOf(database), async (session) => {
    const tables = await readPublishedTables(session, ['p']);
    const shapes = await readTableShapes(
      session,
      tables.map(({ oid }) => oid),
    );
    return tables.map((table) => ({
      table,
      shape: present(shapes.get(table.oid)),
    }));
  });
}

async function theTable(database: TestDatabase): Promise<ReadableTable> {
  return present((await discover(database))[0]);
}

/** A database with one published table. */
async function published(schema: string): Promise<{
  database: TestDatabase;
  reader: ChunkReader;
  readable: ReadableTable;
}> {
  const database = await suite.database();
  await database.query(schema);
  await database.query('create publication p for all tables');
  const readable = await theTable(database);
  return { database, reader: readerOf(database), readable };
}

function boundOf({ table }: ReadableTable, row: RawRow): readonly string[] {
  return present(table.orderKey).map(({ name }) =>
    present(row[columnOf(table, name)]),
  );
}

function columnOf(table: PublishedTable, name: string): number {
  return table.columns.findIndex((column) => column.name === name);
}

/** Reads a table to its end, chunk by chunk. */
async function walk(
  reader: ChunkReader,
  readable: ReadableTable,
  limit: number,
  between: (chunk: ReadChunk) => Promise<void> = async () => {},
): Promise<ReadChunk[]> {
  const chunks: ReadChunk[] = [];
  let after: readonly string[] | null = null;
  for (;;) {
    const read = await reader.behind(
      readable,
      present(readable.table.orderKey),
      after,
      limit,
    );
    chunks.push(read);
    const { rows } = read.chunk;
    const last = rows.at(-1);
    if (last === undefined || (read.whole && rows.length < limit))
      return chunks;
    after = boundOf(readable, last);
    await between(read);
  }
}

function rowsOf(chunks: readonly ReadChunk[]): RawRow[] {
  return chunks.flatMap(({ chunk }) => [...chunk.rows]);
}

const KINDS: readonly [kind: string, schema: string][] = [
  [
    'int4',
    'create table t(id int primary key); insert into t select g - 20 from generate_series(1, 60) g',
  ],
  [
    'int8 and text',
    `create table t(a int8, b text, v text, primary key (b, a));
     insert into t select g * 1000000000000, (g % 3)::text, 'v' from generate_series(1, 60) g`,
  ],
  [
    'uuid',
    'create table t(id uuid primary key, v int); insert into t select gen_random_uuid(), g from generate_series(1, 60) g',
  ],
  [
    'numeric, with infinities and NaN',
    `create table t(n numeric primary key);
     insert into t select g * 1.10 from generate_series(-30, 30) g;
     insert into t values ('NaN'), ('Infinity'), ('-Infinity'), (100000000000000000000.000000000000000000001)`,
  ],
  [
    'float8',
    `create table t(n float8 primary key);
     insert into t select g / 3.0 from generate_series(-30, 30) g;
     insert into t values ('NaN'), ('Infinity'), ('-Infinity'), (1e-300)`,
  ],
  [
    'enum, whose order is not that of its labels',
    `create type mood as enum ('sad', 'ok', 'glad'); alter type mood add value 'mad' before 'sad';
     create table t(m mood, n int, primary key (m, n));
     insert into t select m, g from unnest(enum_range(null::mood)) m, generate_series(1, 12) g`,
  ],
  [
    'bpchar, bit and "char"',
    `create table t(c char(5), b bit(3), d "char", primary key (c, b, d));
     insert into t select chr(97 + g % 5), (g % 8)::bit(3), chr(65 + g % 26)::"char" from generate_series(1, 60) g on conflict do nothing`,
  ],
  [
    'varchar(3) and name',
    `create table t(c varchar(3), n name, primary key (c, n));
     insert into t select chr(97 + g % 5), 'n' || g from generate_series(1, 60) g`,
  ],
  [
    'a domain over a domain, with constraints',
    `create domain positive as int check (value > 0); create domain small as positive check (value < 100);
     create table t(id small primary key); insert into t select generate_series(1, 60)`,
  ],
  [
    'a domain whose collation is not that of the column',
    `create domain word as text collate "C";
     create table t(w word collate "en-x-icu", n int, primary key (w, n));
     insert into t select case g % 2 when 0 then 'a' else 'B' end || g, g from generate_series(1, 60) g`,
  ],
  [
    'text in an order that is not that of its bytes',
    `create table t(w text collate "en-x-icu" primary key);
     insert into t select case g % 4 when 0 then 'a' when 1 then 'A' when 2 then 'ä' else '-b' end || g from generate_series(1, 60) g`,
  ],
  [
    'text of a nondeterministic collation',
    `create collation folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
     create table t(w text collate folded primary key);
     insert into t select case g % 2 when 0 then 'x' else 'X' end || g from generate_series(1, 60) g`,
  ],
  [
    'text with tabs, backslashes, quotes and newlines',
    `create table t(w text primary key);
     insert into t select repeat(x, n) || n from unnest(array[E'\\t', E'\\\\', '''', '"', E'\\n', E'\\\\N', '{', ',', 'ü', '😀']) x, generate_series(1, 6) n`,
  ],
  [
    'citext, whose operators are elsewhere',
    `create schema "Ext"; create extension citext schema "Ext";
     create table t(w "Ext".citext, n int, primary key (w, n));
     insert into t select case g % 2 when 0 then 'b' else 'B' end || g, g from generate_series(1, 60) g`,
  ],
  [
    'timestamptz, date and interval',
    `create table t(ts timestamptz, d date, i interval, primary key (ts, d, i));
     insert into t select '2024-03-31 00:30:00.123456+01'::timestamptz + g * interval '17 minutes', date '0044-03-15 BC' + g, g * interval '1 mon -3 days'
       from generate_series(1, 60) g;
     insert into t values ('infinity', '-infinity', '0'), ('-infinity', 'infinity', '1 year')`,
  ],
  [
    'bytea, bool and money',
    `create table t(b bytea, f bool, m money, primary key (b, f, m));
     insert into t select decode(lpad(to_hex(g * 7 % 256), 2, '0'), 'hex'), g % 2 = 0, g from generate_series(1, 60) g`,
  ],
  [
    'arrays, ranges and inet',
    `create table t(a int[], r int4range, i inet, primary key (a, r, i));
     insert into t select array[g % 3, g], int4range(g, g + 5), ('10.0.0.' || g)::inet from generate_series(1, 60) g;
     insert into t values ('{}', 'empty', '::1')`,
  ],
  [
    'a composite type',
    `create type pair as (a int, b text);
     create table t(p pair primary key); insert into t select row(g % 4, 'x,"' || g)::pair from generate_series(1, 60) g`,
  ],
  [
    'reserved and mixed-case names',
    `create schema "Select"; create table "Select"."Order"("User" int, "a""b" text, primary key ("a""b", "User"));
     insert into "Select"."Order" select g, 'k' || g % 3 from generate_series(1, 60) g`,
  ],
  [
    'columns that are read in another order than they are declared, with columns of the index beside its key (hazard 8)',
    `create table t(v int, b int, a int, c text, primary key (a, b) include (c, v));
     insert into t select 60 - g, g % 5, g, 'c' from generate_series(1, 60) g`,
  ],
  [
    'an index that is the replica identity',
    `create table t(id int not null, v text, w int not null);
     create unique index by_id on t(w, id); alter table t replica identity using index by_id;
     insert into t select g, 'v', g % 4 from generate_series(1, 60) g`,
  ],
  [
    'partitions of two levels',
    `create table t(id int, k text, primary key (k, id)) partition by list (k);
     create table t_a partition of t for values in ('a') partition by range (id);
     create table t_a1 partition of t_a for values from (0) to (30); create table t_a2 partition of t_a for values from (30) to (100);
     create table t_b partition of t default;
     insert into t select g, case g % 2 when 0 then 'a' else 'b' end from generate_series(1, 60) g`,
  ],
];

describe('chunks in the order of a key', () => {
  it.each(KINDS)('hold every row once by %s', async (kind, schema) => {
    const database = await suite.database();
    await database.query(schema);
    await database.query(
      kind.startsWith('partitions')
        ? 'create publication p for table t with (publish_via_partition_root)'
        : 'create publication p for all tables',
    );
    const readable = await theTable(database);
    const { quotedName } = readable.table;
    const reader = readerOf(database);
    const order = present(readable.table.orderKey);
    for (const limit of [1, 7, 60, 1_000]) {
      const chunks = await walk(reader, readable, limit);
      const keys = rowsOf(chunks).map((row) => boundOf(readable, row));
      const rows = await database.query<{ key: string[] }>(
        `select array[${order.map(({ quotedName: name }) => `format('%s', ${name})`).join(', ')}] as key
           from ${quotedName} order by ${order.map(({ quotedName: name }) => name).join(', ')}`,
      );
      expect(keys.map((key) => key.join('|')).length).toBe(rows.length);
      expect(new Set(keys.map((key) => key.join('|'))).size).toBe(rows.length);
      const [columnsOfKey] = [order.map(({ name }) => name)];
      expect(columnsOfKey.length).toBeGreaterThan(0);
      if (limit === 1) expect(chunks.length).toBe(rows.length + 1);
    }
  });
});
