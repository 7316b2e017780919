import { PublicationSet } from '../lib/engine/server/capture/publication-set.js';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ConnectionFault } from '../lib/engine/model/connection-fault.js';
import { parseLsn } from '../lib/engine/model/lsn.js';
import { judgeError } from '../lib/engine/server/error-classes.js';
import type { PublishedTable } from '../lib/engine/server/published-table.js';
import { readPublishedTables } from '../lib/engine/server/published-tables.js';
import {
  type SessionTarget,
  withSqlSession,
} from '../lib/engine/server/session.js';
import {
  type ChunkQuery,
  chunkQuery,
} from '../lib/engine/snapshot/incremental/chunk-query.js';
import {
  ChunkReader,
  PLANNING,
  type ReadableTable,
  type ReadChunk,
} from '../lib/engine/snapshot/incremental/chunk-reader.js';
import { sees } from '../lib/engine/snapshot/incremental/visibility.js';
import { readTableShapes } from '../lib/engine/snapshot/incremental/table-shape.js';
import {
  PAGE_BYTES,
  type RawRow,
  type RawRows,
} from '../lib/engine/snapshot/raw-row.js';
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
    const tables = await readPublishedTables(session, new PublicationSet(['p']));
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
    'citext alone',
    `create schema "Ext"; create extension citext schema "Ext";
     create table t(w "Ext".citext primary key);
     insert into t select case g % 2 when 0 then 'b' else 'B' end || g from generate_series(1, 60) g`,
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

/** Fit to be compared where the order does not matter. */
function sorted(rows: RawRows): string[] {
  return Array.from(rows, (row) => JSON.stringify(row)).toSorted();
}

async function wholeOf(
  reader: ChunkReader,
  readable: ReadableTable,
): Promise<ReadChunk[]> {
  const chunks: ReadChunk[] = [];
  for await (const chunk of reader.whole(readable)) chunks.push(chunk);
  return chunks;
}

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
    const reader = readerOf(database);
    const all = sorted(rowsOf(await wholeOf(reader, readable)));
    expect(all.length).toBeGreaterThan(20);
    for (const limit of [1, 7, all.length, 1_000]) {
      const chunks = await walk(reader, readable, limit);
      expect(sorted(rowsOf(chunks))).toEqual(all);
      expect(chunks.map(({ chunk }) => chunk.rows.length)).toEqual([
        ...Array.from({ length: Math.floor(all.length / limit) }, () => limit),
        all.length % limit,
      ]);
    }
  });

  it.each([
    [
      'one column',
      'create table t(id uuid primary key, v text); insert into t select gen_random_uuid(), repeat($$x$$, 100) from generate_series(1, 50000) g',
    ],
    [
      'several columns',
      `create type kind as enum ('a', 'b'); create schema ext; create extension citext schema ext;
       create table t(v text, n numeric, k kind, w ext.citext, id int, primary key (k, w, n, id));
       insert into t select repeat('x', 100), g, 'b', 'w' || g % 7, g from generate_series(1, 50000) g`,
    ],
  ])('are found by the index of %s, without a sort', async (_of, schema) => {
    const { database, readable } = await published(`${schema}; analyze t`);
    const order = present(readable.table.orderKey);
    const { rows } = present(
      (await walk(readerOf(database), readable, 60_000))[0],
    ).chunk;
    for (const limit of [1_000, 20_000]) {
      const after = boundOf(readable, present(rows.at(25_000)));
      const plan = await planOf(
        database,
        chunkQuery(readable.table, { kind: 'ordered', order, after, limit }),
      );
      expect(plan).toMatch(/Index (Only )?Scan using t_pkey/);
      expect(plan).toMatch(/Index Cond: .*>/);
      expect(plan).not.toMatch(/Sort|Seq Scan|Bitmap|Gather/);
    }
  });
});

/** The plan of the SELECT of a chunk, in a session like that of a reader. */
async function planOf(
  database: TestDatabase,
  { sql, settings }: ChunkQuery,
): Promise<string> {
  const client = await database.connect();
  await client.query("set search_path = ''");
  await client.query(PLANNING);
  for (const [name, value] of settings)
    await client.query('select set_config($1, $2, false)', [name, value]);
  const select = sql.replace(/^COPY \((.*)\) TO STDOUT$/su, '$1');
  const { rows } = await client.query<Record<string, string>>(
    `explain ${select}`,
  );
  return rows.map((row) => row['QUERY PLAN']).join('\n');
}

/** Resolves when a session of the reader waits for a lock. */
async function waitsForLock(database: TestDatabase): Promise<void> {
  await waitFor(
    async () =>
      (
        await database.query(
          "select from pg_stat_activity where application_name = $1 and wait_event_type = 'Lock'",
          [NAME],
        )
      ).length > 0,
    { message: 'the reader to wait for a lock' },
  );
}

/** Sessions of the reader with a transaction or a snapshot. */
async function holding(database: TestDatabase): Promise<number> {
  const rows = await database.query(
    'select from pg_stat_activity where application_name = $1 and (xact_start is not null or backend_xmin is not null)',
    [NAME],
  );
  return rows.length;
}

function first(
  reader: ChunkReader,
  readable: ReadableTable,
  limit = 1_000,
  after: readonly string[] | null = null,
): Promise<ReadChunk> {
  return reader.behind(
    readable,
    present(readable.table.orderKey),
    after,
    limit,
  );
}

const SOME_ROWS =
  'create table t(id int primary key, v text); insert into t select g, $$v$$ || g from generate_series(1, 100) g';

describe('the transaction of a chunk', () => {
  it('says what its snapshot saw, and a position behind that', async () => {
    const { database, reader, readable } = await published(SOME_ROWS);
    const open = await database.connect();
    await open.query('begin');
    const { rows } = await open.query<{ xid: string }>(
      'insert into t values (0) returning pg_current_xact_id()::text as xid',
    );
    const xid = BigInt(present(rows[0]).xid);
    const [before] = await database.query<{ lsn: string }>(
      'select pg_current_wal_insert_lsn() as lsn',
    );
    const { chunk, whole } = await first(reader, readable);
    expect(whole).toBe(true);
    expect(chunk.rows.length).toBe(100);
    expect(sees(chunk.visible, Number(xid))).toBe(false);
    expect(chunk.visible.xmin).toBeLessThanOrEqual(xid);
    expect(chunk.visible.inRecovery).toBe(false);
    expect(chunk.readAt).toBeGreaterThanOrEqual(
      present(parseLsn(present(before).lsn)),
    );
    await open.query('commit');
    const later = await first(reader, readable);
    expect(later.chunk.visible.xmin).toBeGreaterThan(xid);
    expect(later.chunk.rows.length).toBe(101);
    expect(await holding(database)).toBe(0);
  });

  it('has the position of the one before where its snapshot is the same: what is written by open transactions, or by reading, may stay unflushed', async () => {
    const { database, reader, readable } = await published(SOME_ROWS);
    const open = await database.connect();
    await open.query('begin; insert into t values (0)');
    const one = await first(reader, readable);
    await open.query('insert into t values (-1)');
    const two = await first(reader, readable);
    expect(two.chunk.readAt).toBe(one.chunk.readAt);
    await database.query('insert into t values (-2)');
    const three = await first(reader, readable);
    expect(three.chunk.readAt).toBeGreaterThan(one.chunk.readAt);
  });

  it('knows that the log is flushed where a page, or a segment, begins', async () => {
    const { database, reader, readable } = await published(SOME_ROWS);
    for (let time = 0; time < 3; time += 1) {
      // Behind it there is nothing but a header.
      await database.query('select pg_switch_wal()');
      const { chunk } = await first(reader, readable);
      await waitFor(async () => (await reader.poll()).flushed >= chunk.readAt, {
        timeout: 2_000,
        message: 'the log to be flushed',
      });
      await database.query('insert into t values ($1)', [-1 - time]);
    }
  });

  it.each([
    ['ALTER TABLE … TYPE', 'alter table t alter v type varchar(1000)'],
    ['CLUSTER', 'cluster t using t_pkey'],
    ['a new value', "update t set v = 'new'"],
  ])(
    'takes its snapshot behind its lock: %s meanwhile is seen',
    async (_what, sql) => {
      const { database, reader, readable } = await published(SOME_ROWS);
      const writer = await database.connect();
      await writer.query(
        `begin; lock table t in access exclusive mode; ${sql}`,
      );
      const reading = first(reader, readable);
      await waitsForLock(database);
      await writer.query('commit');
      if (sql.startsWith('alter')) {
        await expect(reading).rejects.toThrow(ConnectionFault);
        await expect(reading).rejects.toThrow(/t was changed/);
        const again = await first(reader, await theTable(database));
        expect(again.chunk.rows.length).toBe(100);
      } else expect((await reading).chunk.rows.length).toBe(100);
    },
  );

  it('sees a table empty that was truncated while it waited', async () => {
    const { database, reader, readable } = await published(SOME_ROWS);
    const writer = await database.connect();
    await writer.query('begin; truncate t; insert into t values (7)');
    const reading = first(reader, readable);
    await waitsForLock(database);
    await writer.query('commit');
    expect([...(await reading).chunk.rows]).toEqual([['7', null]]);
  });

  it.each([
    ['a column more', 'alter table t add w int default 5'],
    ['a column less', 'alter table t drop v'],
    ['a column with another name', 'alter table t rename v to w'],
    ['another name', 'alter table t rename to u'],
    ['another schema', 'create schema s; alter table t set schema s'],
    [
      'another key',
      'alter table t drop constraint t_pkey; alter table t add primary key (id)',
    ],
    ['another replica identity', 'alter table t replica identity full'],
    ['another row filter', 'alter publication p set table t where (id > 5)'],
    ['a column list', 'alter publication p set table t (id)'],
    ['no table any more', 'drop table t'],
  ])('finds that there is %s', async (_what, sql) => {
    const database = await suite.database();
    await database.query(`${SOME_ROWS}; create publication p for table t`);
    const readable = await theTable(database);
    const reader = readerOf(database);
    await first(reader, readable, 10);
    await database.query(sql);
    await expect(first(reader, readable, 10)).rejects.toThrow(ConnectionFault);
    await database.query('create table if not exists other(id int)');
  });

  it('does not mind statistics, comments and vacuum', async () => {
    const { database, reader, readable } = await published(SOME_ROWS);
    await database.query('alter table t alter v set statistics 5');
    await database.query("comment on table t is 'x'");
    await database.query('vacuum full analyze t');
    expect((await first(reader, readable)).chunk.rows.length).toBe(100);
  });

  it('rejects when its session is lost, and the next one has another', async () => {
    const { database, reader, readable } = await published(SOME_ROWS);
    await first(reader, readable, 10);
    const [row] = await database.query<{ pid: number }>(
      'select pid from pg_stat_activity where application_name = $1',
      [NAME],
    );
    await terminateBackend(database, present(row).pid);
    // What it hears first, the last words of the server or the end of the connection, is a matter of luck.
    await expect(first(reader, readable, 10)).rejects.toThrow(Error);
    expect((await first(reader, readable, 10)).chunk.rows.length).toBe(10);
  });

  it('tells no key value when the server refuses it', async () => {
    const { reader, readable } = await published(SOME_ROWS);
    const order = present(readable.table.orderKey);
    const error = await reader
      .behind(readable, order, ['SECRET'], 5)
      .catch((reason: unknown) => reason);
    const judged = judgeError(error, 'streaming');
    expect(judged.class).toBe('permanent');
    expect(judged.reason).not.toContain('SECRET');
  });
});

describe('chunks of wide rows', () => {
  it('end with the row by which they hold 4 MiB, and the next goes on behind it', async () => {
    const { reader, readable } = await published(
      `create table t(id int primary key, v text);
       insert into t select g, repeat('x', 1000000) from generate_series(1, 12) g`,
    );
    const chunks = await walk(reader, readable, 1_000);
    expect(rowsOf(chunks).map(([id]) => id)).toEqual(
      Array.from({ length: 12 }, (_, index) => String(index + 1)),
    );
    for (const { chunk, whole } of chunks.slice(0, -1)) {
      expect(chunk.rows.length).toBe(5);
      expect(whole).toBe(false);
    }
  });

  it('hold one row that is larger than that', async () => {
    const { reader, readable } = await published(
      `create table t(id int primary key, v text);
       insert into t select g, repeat('x', 9000000) from generate_series(1, 3) g`,
    );
    const chunks = await walk(reader, readable, 1);
    expect(chunks.map(({ chunk }) => chunk.rows.length)).toEqual([1, 1, 1, 0]);
    expect(chunks.map(({ whole }) => whole)).toEqual([true, true, true, true]);
  });

  it('leave no transaction behind when they are cut', async () => {
    const { database, reader, readable } = await published(
      `create table t(id int primary key, v text);
       insert into t select g, repeat('x', 1000000) from generate_series(1, 30) g`,
    );
    await first(reader, readable);
    await waitFor(async () => (await holding(database)) === 0, {
      timeout: 15_000,
      message: 'the transaction to end',
    });
    expect(PAGE_BYTES).toBeLessThan(30_000_000);
  });
});

describe('rows with certain keys', () => {
  it('are read by values of every type of the key', async () => {
    const { database, reader, readable } = await published(
      `create extension citext;
       create table t(c char(4), w citext, n numeric(6, 2), v text, primary key (w, c, n));
       insert into t select chr(97 + g % 5), 'W' || g, g, 'v' || g from generate_series(1, 50) g`,
    );
    const { rows } = (await first(reader, readable)).chunk;
    const wanted = [3, 17, 40].map((place) => present(rows.at(place)));
    const order = present(readable.table.orderKey);
    const keys = wanted.map((row) => boundOf(readable, row));
    const read = await reader.withKeys(readable, order, [
      ...keys,
      ['none', 'x', '1'],
    ]);
    expect(sorted(read.chunk.rows)).toEqual(sorted(wanted));
    expect(read.whole).toBe(true);
    const plan = await planOf(
      database,
      chunkQuery(readable.table, { kind: 'keys', columns: order, keys }),
    );
    expect(plan).toContain('Index Scan');
    expect(plan).not.toContain('Seq Scan on');
  });

  it('are as many as 4 MiB hold', async () => {
    const { reader, readable } = await published(
      `create table t(id int primary key, v text);
       insert into t select g, repeat('x', 1000000) from generate_series(1, 12) g`,
    );
    const keys = Array.from({ length: 12 }, (_, index) => [String(index + 1)]);
    const order = present(readable.table.orderKey);
    const read = await reader.withKeys(readable, order, keys);
    expect(read.whole).toBe(false);
    expect(read.chunk.rows.length).toBe(5);
  });
});

describe('a table without a key', () => {
  it('is read in one transaction, with one snapshot', async () => {
    const { database, reader, readable } = await published(
      'create table t(v text); insert into t select $$v$$ || g from generate_series(1, 2500) g',
    );
    expect(readable.table.orderKey).toBeNull();
    const chunks: ReadChunk[] = [];
    for await (const read of reader.whole(readable)) {
      if (chunks.length === 0)
        await database.query("insert into t values ('later')");
      chunks.push(read);
    }
    expect(chunks.map(({ chunk }) => chunk.rows.length)).toEqual([
      1_000, 1_000, 500,
    ]);
    expect(chunks.map(({ whole }) => whole)).toEqual([false, false, true]);
    expect(new Set(chunks.map(({ chunk }) => chunk.visible)).size).toBe(1);
    expect(await holding(database)).toBe(0);
  });

  it('gives an empty chunk when it is empty', async () => {
    const { reader, readable } = await published('create table t(v text)');
    const chunks = await wholeOf(reader, readable);
    expect(chunks.map(({ chunk }) => [...chunk.rows])).toEqual([[]]);
    expect(chunks[0]?.whole).toBe(true);
  });

  it('may be left before its end', async () => {
    const { database, reader, readable } = await published(
      'create table t(v text); insert into t select repeat($$v$$, 5000) from generate_series(1, 5000) g',
    );
    for await (const read of reader.whole(readable)) {
      expect(read.whole).toBe(false);
      break;
    }
    await waitFor(async () => (await holding(database)) === 0, {
      timeout: 15_000,
      message: 'the transaction to end',
    });
    expect((await wholeOf(reader, readable)).length).toBeGreaterThan(5);
  });
});
