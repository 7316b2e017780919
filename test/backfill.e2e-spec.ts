import { describe, expect, it } from 'vitest';
import { ConnectionFault } from '../lib/engine/model/connection-fault.js';
import { HaltError } from '../lib/engine/model/halt.js';
import { BackfillEndedError } from '../lib/engine/snapshot/incremental/backfill-ended-error.js';
import { Backfilling, Sink } from './support/backfilling.js';
import { MIXED_TABLES, MixedWriter } from './support/mixed-writer.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { deferred, waitFor } from './support/wait-for.js';

const suite = useServer();

async function sourceOf(
  schema: string,
  publication = 'create publication p for all tables',
): Promise<TestDatabase> {
  const source = await suite.database();
  await source.query(schema);
  await source.query(publication);
  return source;
}

describe('a backfill', () => {
  it('copies every table in chunks, and tells first that each is to be emptied', async () => {
    const source = await sourceOf(
      `create table a(id int primary key, v text); insert into a select g, 'v' || g from generate_series(1, 2500) g;
       create table b(id int primary key);
       create table c(v text); insert into c select 'same' from generate_series(1, 1200)`,
    );
    const sink = await Sink.create(source, ['public.c']);
    const running = await Backfilling.start(sink);
    await running.complete();
    expect(
      sink.calls.map(({ context, rows }) => [
        context.relation,
        context.firstForTable,
        rows.length,
        context.complete,
      ]),
    ).toEqual([
      ['public.a', true, 0, false],
      ['public.b', true, 0, false],
      ['public.c', true, 0, false],
      ['public.a', false, 1_000, false],
      ['public.a', false, 1_000, false],
      ['public.a', false, 500, false],
      ['public.b', false, 0, false],
      ['public.c', false, 1_000, false],
      ['public.c', false, 200, false],
      ['', false, 0, true],
    ]);
    for (const relation of ['public.a', 'public.b', 'public.c'])
      expect(await sink.mirror.differences(source, relation)).toEqual([]);
    expect(running.meter).toEqual([
      'begin 3 of 3',
      'done public.a',
      'done public.b',
      'done public.c',
      'complete',
    ]);
    await waitFor(async () => {
      const sessions = await source.query(
        "select from pg_stat_activity where application_name = 'backfilling' and backend_type = 'client backend'",
      );
      return sessions.length === 0;
    });
  });

  it('is right beside a writer of inserts, updates, deletes and key changes (K05, 62, 68)', async () => {
    const source = await sourceOf(
      MIXED_TABLES,
      'create publication p for table account, entry',
    );
    await source.query(
      `insert into account select g, 'n' || g, 0, repeat('y', 9000) from generate_series(0, 96) g;
       insert into entry select g % 97, g, g from generate_series(1, 4000) g`,
    );
    const sink = await Sink.create(source);
    const writer = await MixedWriter.start(source);
    const running = await Backfilling.start(sink, { chunkRows: 25 });
    await running.complete();
    await writer.stop();
    await running.caughtUp();
    expect(await sink.mirror.differences(source, 'public.account')).toEqual([]);
    expect(await sink.mirror.differences(source, 'public.entry')).toEqual([]);
  });

  it('goes on behind the last chunk when it is killed again and again, and tells once that it is complete (K07, 61)', async () => {
    const source = await sourceOf(
      'create table t(id int primary key, v text); insert into t select g, $$v$$ || g from generate_series(1, 1000) g',
    );
    const sink = await Sink.create(source);
    for (let kills = 0; !sink.isComplete; kills += 1) {
      const before = sink.calls.length;
      const running = await Backfilling.start(sink, {
        chunkRows: 50,
        maxPendingChunks: 1 + (kills % 3),
      });
      await waitFor(
        () => sink.isComplete || sink.calls.length >= before + 1 + (kills % 4),
      );
      await running.stop();
      expect(kills).toBeLessThan(50);
    }
    const ids = sink
      .callsOf('public.t')
      .flatMap(({ rows }) => rows.map(({ record }) => Number(record['id'])));
    expect(ids).toEqual(Array.from({ length: 1_000 }, (_, index) => index + 1));
    expect(
      sink.calls.filter(({ context }) => context.firstForTable).length,
    ).toBe(1);
    expect(sink.calls.filter(({ context }) => context.complete).length).toBe(1);
    const after = sink.calls.length;
    const running = await Backfilling.start(sink);
    await source.query('insert into t values (0)');
    await running.caughtUp();
    expect(sink.calls.length).toBe(after);
    expect(running.meter).toEqual([]);
    expect(await sink.mirror.differences(source, 'public.t')).toEqual([]);
  });

  it('is right when it is killed again and again beside a writer', async () => {
    const source = await sourceOf(
      MIXED_TABLES,
      'create publication p for table account, entry',
    );
    await source.query(
      `insert into account select g, 'n' || g, 0, repeat('y', 9000) from generate_series(0, 96) g;
       insert into entry select g % 97, g, g from generate_series(1, 3000) g`,
    );
    const sink = await Sink.create(source);
    const writer = await MixedWriter.start(source);
    for (let kills = 0; !sink.isComplete && kills < 40; kills += 1) {
      const before = sink.calls.length;
      const running = await Backfilling.start(sink, { chunkRows: 20 });
      await waitFor(
        () => sink.isComplete || sink.calls.length >= before + 3 + (kills % 7),
      );
      await running.stop();
    }
    const running = await Backfilling.start(sink, { chunkRows: 20 });
    await running.complete();
    await writer.stop();
    await running.caughtUp();
    expect(await sink.mirror.differences(source, 'public.account')).toEqual([]);
    expect(await sink.mirror.differences(source, 'public.entry')).toEqual([]);
    expect(
      sink.calls.filter(({ context }) => context.firstForTable).length,
    ).toBe(2);
  });

  it('clears what is left to clear when it was killed while it cleared (66)', async () => {
    const source = await sourceOf(
      'create table a(id int primary key); create table b(id int primary key); insert into b values (1)',
    );
    const sink = await Sink.create(source);
    const first = await Backfilling.start(sink, {
      beforeApply: async () => {
        if (sink.calls.length === 1) await new Promise(() => {});
      },
    });
    await waitFor(() => sink.calls.length === 1);
    void first.stop();
    const running = await Backfilling.start(sink);
    await running.complete();
    expect(
      sink.calls
        .filter(({ context }) => context.firstForTable)
        .map(({ context }) => context.relation),
    ).toEqual(['public.a', 'public.b']);
    expect(await sink.mirror.differences(source, 'public.b')).toEqual([]);
  });

  it('waits after a restart for transactions that were open, and says so', async () => {
    const source = await sourceOf(
      'create table t(id int primary key, v text); insert into t select g, $$v$$ from generate_series(1, 100) g; create table other(id int)',
    );
    const sink = await Sink.create(source);
    const first = await Backfilling.start(sink, { chunkRows: 10 });
    await waitFor(() => sink.calls.length >= 3);
    await first.stop();
    const writer = await source.connect();
    await writer.query("set application_name = 'the writer'; begin");
    await writer.query("update t set v = 'late' where id in (2, 99)");
    const running = await Backfilling.start(sink, { chunkRows: 10 });
    const calls = sink.calls.length;
    await waitFor(() => running.waiting !== null);
    expect(running.waiting).toMatchObject({
      what: 'copy',
      for: 'transaction',
      name: 'the writer',
    });
    expect(running.waiting?.ageSeconds).toBeGreaterThanOrEqual(0);
    await source.query("insert into t values (1000, 'beside')");
    await running.caughtUp();
    expect(sink.calls.length).toBe(calls);
    await writer.query('commit');
    await running.complete();
    expect(running.waiting).toBeNull();
    await running.caughtUp();
    expect(await sink.mirror.differences(source, 'public.t')).toEqual([]);
  });

  it('reads a table from its beginning when its key is another one after a restart, and clears nothing', async () => {
    const source = await sourceOf(
      'create table t(id int primary key, n int not null); insert into t select g, 1000 - g from generate_series(1, 100) g',
    );
    const sink = await Sink.create(source);
    const first = await Backfilling.start(sink, { chunkRows: 10 });
    await waitFor(() => sink.calls.length >= 3);
    await first.stop();
    await source.query(
      'alter table t drop constraint t_pkey; alter table t add primary key (n)',
    );
    const before = sink.calls.length;
    const running = await Backfilling.start(sink, { chunkRows: 10 });
    await running.complete();
    const rows = sink.calls.slice(before).flatMap((call) => call.rows);
    expect(rows.length).toBe(100);
    expect(
      sink.calls.filter(({ context }) => context.firstForTable).length,
    ).toBe(1);
  });

  it('leaves out tables that were dropped meanwhile, and those that came later (75)', async () => {
    const source = await sourceOf(
      'create table a(id int primary key); insert into a select generate_series(1, 100); create table b(id int primary key); insert into b values (1)',
    );
    const sink = await Sink.create(source);
    const first = await Backfilling.start(sink, { chunkRows: 10 });
    await waitFor(() => sink.calls.length >= 4);
    await first.stop();
    await source.query(
      'drop table b; create table later(id int primary key); insert into later values (1)',
    );
    const running = await Backfilling.start(sink, { chunkRows: 10 });
    expect(running.listed).toEqual(['public.a']);
    await running.complete();
    await running.caughtUp();
    expect(sink.callsOf('public.later')).toEqual([]);
    expect(await sink.mirror.differences(source, 'public.a')).toEqual([]);
  });

  it('ends with a fault that passes when a table is changed while it is copied, and goes on', async () => {
    const source = await sourceOf(
      'create table t(id int primary key); insert into t select generate_series(1, 100)',
    );
    const sink = await Sink.create(source);
    let changed = false;
    const first = await Backfilling.start(sink, {
      chunkRows: 10,
      maxPendingChunks: 1,
      beforeApply: async () => {
        if (changed || sink.calls.length < 3) return;
        changed = true;
        await source.query('alter table t add v int default 7');
      },
    });
    await waitFor(() => first.failure !== null);
    expect(first.failure).toBeInstanceOf(ConnectionFault);
    expect(first.meter.at(-1)).toBe('interrupted');
    await first.stop();
    const running = await Backfilling.start(sink, { chunkRows: 10 });
    await running.complete();
    expect([...sink.mirror.rows('public.t')].length).toBe(100);
    const rows = sink.callsOf('public.t').flatMap((call) => call.rows);
    expect(rows.at(-1)?.record).toEqual({ id: '100', v: '7' });
  });
});

describe('rows that lack columns', () => {
  const SCHEMA = `create table t(id int primary key, big text, n int); alter table t alter big set storage external;
    insert into t select g, repeat('x', 9000) || g, 0 from generate_series(1, 100) g`;

  it('are filled by their chunk, or read by their keys when reading has passed them', async () => {
    const source = await sourceOf(SCHEMA);
    const sink = await Sink.create(source);
    let moved = false;
    const running = await Backfilling.start(sink, {
      chunkRows: 10,
      maxPendingChunks: 1,
      beforeApply: async () => {
        if (moved || sink.calls.length < 4) return;
        moved = true;
        await source.query('update t set n = 1 where id in (70, 100)');
        await source.query('update t set id = id - 1000 where id in (80, 90)');
        await source.query('update t set n = 2 where id = -910');
      },
    });
    await running.complete();
    await running.caughtUp();
    expect(await sink.mirror.differences(source, 'public.t')).toEqual([]);
    const rows = sink
      .callsOf('public.t')
      .flatMap((call) => call.rows)
      .map(({ record }) => record['id']);
    expect(rows).toContain('-920');
    expect(rows).toContain('-910');
  });

  it('are known after a crash', async () => {
    const source = await sourceOf(SCHEMA);
    const sink = await Sink.create(source);
    let moved = false;
    const first = await Backfilling.start(sink, {
      chunkRows: 10,
      maxPendingChunks: 1,
      beforeApply: async () => {
        if (moved || sink.calls.length < 4) return;
        moved = true;
        await source.query('update t set id = id - 1000 where id in (80, 90)');
      },
    });
    await waitFor(() =>
      [...sink.mirror.rows('public.t')].some((row) => row['id'] === '-920'),
    );
    await first.stop();
    expect(
      [...sink.mirror.rows('public.t')].find((row) => row['id'] === '-920'),
    ).toEqual({ id: '-920', n: '0' });
    const running = await Backfilling.start(sink, { chunkRows: 10 });
    await running.complete();
    expect(await sink.mirror.differences(source, 'public.t')).toEqual([]);
  });

  it('are read by the columns of a replica identity that is not the key', async () => {
    const source = await sourceOf(
      `create extension citext; create table t(id int primary key, code citext not null unique, big text, n int);
       alter table t alter big set storage external; alter table t replica identity using index t_code_key;
       insert into t select g, 'C' || g, repeat('x', 9000) || g, 0 from generate_series(1, 100) g`,
    );
    const sink = await Sink.create(source);
    let moved = false;
    const running = await Backfilling.start(sink, {
      chunkRows: 10,
      maxPendingChunks: 1,
      beforeApply: async () => {
        if (moved || sink.calls.length < 4) return;
        moved = true;
        await source.query(
          "update t set id = id - 1000, code = 'moved' || code where id in (80, 90)",
        );
      },
    });
    await running.complete();
    await running.caughtUp();
    expect(await sink.mirror.differences(source, 'public.t')).toEqual([]);
  });
});

describe('a table without a key', () => {
  const SCHEMA =
    'create table t(a int, b text); alter table t replica identity full; insert into t select g % 3, $$v$$ from generate_series(1, 3000) g';

  it('is copied again with a clearing call when it was written to, and is right (K14)', async () => {
    const source = await sourceOf(SCHEMA);
    const sink = await Sink.create(source, ['public.t']);
    let written = false;
    const started = deferred<Backfilling>();
    const running = await Backfilling.start(sink, {
      maxPendingChunks: 1,
      beforeApply: async () => {
        if (written || sink.calls.length < 2) return;
        written = true;
        await source.query(
          'update t set b = $$new$$ where ctid = (select min(ctid) from t)',
        );
        await source.query(
          'delete from t where ctid = (select max(ctid) from t)',
        );
        await (await started.promise).received();
      },
    });
    started.resolve(running);
    await running.complete();
    await running.caughtUp();
    expect(await sink.mirror.differences(source, 'public.t')).toEqual([]);
    expect(running.meter).toEqual([
      'begin 1 of 1',
      'again public.t',
      'done public.t',
      'complete',
    ]);
    const calls = sink
      .callsOf('public.t')
      .map(({ context, rows }) => [context.firstForTable, rows.length]);
    expect(calls.slice(0, 2)).toEqual([
      [true, 0],
      [false, 1_000],
    ]);
    expect(calls.slice(-3)).toEqual([
      [true, 1_000],
      [false, 1_000],
      [false, 999],
    ]);
  });

  it('is cleared once more when it was written to before it was read', async () => {
    const source = await sourceOf(
      `${SCHEMA}; create table a(id int primary key); insert into a select generate_series(1, 100)`,
    );
    const sink = await Sink.create(source, ['public.t']);
    let written = false;
    const running = await Backfilling.start(sink, {
      chunkRows: 50,
      maxPendingChunks: 1,
      beforeApply: async (call) => {
        if (written || call?.context.relation !== 'public.a') return;
        written = true;
        await source.query('insert into t values (7, $$seven$$)');
        await waitFor(async () => {
          const rows = await source.query(
            'select from pg_stat_activity where backend_xid is not null',
          );
          return rows.length === 0;
        });
      },
    });
    await running.complete();
    await running.caughtUp();
    expect(await sink.mirror.differences(source, 'public.t')).toEqual([]);
  });

  it('halts after three attempts (69)', async () => {
    const source = await sourceOf(SCHEMA);
    const sink = await Sink.create(source, ['public.t']);
    const started = deferred<Backfilling>();
    const running = await Backfilling.start(sink, {
      maxPendingChunks: 1,
      beforeApply: async (call) => {
        if (call === null || call.rows.length === 0) return;
        await source.query('insert into t values (1)');
        await (await started.promise).received();
      },
    });
    started.resolve(running);
    await waitFor(() => running.failure !== null);
    expect(running.failure).toBeInstanceOf(HaltError);
    expect(String(running.failure)).toContain('snapshot_table_contended');
    expect(running.meter).toEqual([
      'begin 1 of 1',
      'again public.t',
      'again public.t',
      'interrupted',
    ]);
  });

  it('is copied whole again after a crash', async () => {
    const source = await sourceOf(SCHEMA);
    const sink = await Sink.create(source, ['public.t']);
    const first = await Backfilling.start(sink, { maxPendingChunks: 1 });
    await waitFor(() => sink.calls.length >= 2);
    await first.stop();
    const running = await Backfilling.start(sink);
    await running.complete();
    expect(await sink.mirror.differences(source, 'public.t')).toEqual([]);
  });
});

describe('tables that are added while streaming (K17)', () => {
  const SCHEMA =
    'create table t(id int primary key); insert into t select generate_series(1, 100)';

  async function streamingCopy(): Promise<{
    source: TestDatabase;
    sink: Sink;
    running: Backfilling;
  }> {
    const source = await sourceOf(SCHEMA);
    const sink = await Sink.create(source);
    const running = await Backfilling.start(sink, { chunkRows: 10 });
    await running.complete();
    return { source, sink, running };
  }

  it('are cleared in the order of the stream, copied and told of', async () => {
    const { source, sink, running } = await streamingCopy();
    await source.query(
      'create table late(id int primary key, v text); insert into late select g, $$v$$ from generate_series(1, 95) g',
    );
    const writer = await source.connect();
    await writer.query('begin; update late set v = $$new$$ where id = 50');
    const adding = running.backfill.add(['public.late']);
    await waitFor(() => running.waiting !== null);
    expect(sink.isComplete).toBe(false);
    await writer.query('commit');
    await adding;
    await running.complete();
    await running.caughtUp();
    expect(running.listed).toEqual(['public.t', 'public.late']);
    expect(await sink.mirror.differences(source, 'public.late')).toEqual([]);
    expect(await sink.mirror.differences(source, 'public.t')).toEqual([]);
    expect(sink.callsOf('public.late')[0]?.context.firstForTable).toBe(true);
    expect(running.meter).toEqual([
      'begin 1 of 1',
      'done public.t',
      'complete',
      'begin 1 of 2',
      'done public.late',
      'complete',
    ]);
  });

  it('are copied once more when they were copied, beside a writer', async () => {
    const { source, sink, running } = await streamingCopy();
    const writer = (async () => {
      for (let id = 101; id <= 300; id += 1) {
        await source.query('insert into t values ($1)', [id]);
        await source.query('delete from t where id = $1', [id - 60]);
      }
    })();
    await running.backfill.add(['public.t']);
    await writer;
    await running.complete();
    await running.caughtUp();
    expect(await sink.mirror.differences(source, 'public.t')).toEqual([]);
    expect(
      sink.callsOf('public.t').filter(({ context }) => context.firstForTable)
        .length,
    ).toBe(2);
  });

  it('go on after a crash', async () => {
    const { source, sink, running } = await streamingCopy();
    await source.query(
      'create table late(id int primary key); insert into late select generate_series(1, 100)',
    );
    const adding = running.backfill.add(['public.late']);
    const outcome = adding.catch((error: unknown) => error);
    await waitFor(() => sink.callsOf('public.late').length >= 3);
    await running.stop();
    expect(await outcome).toBeInstanceOf(BackfillEndedError);
    const again = await Backfilling.start(sink, { chunkRows: 10 });
    await again.complete();
    expect(await sink.mirror.differences(source, 'public.late')).toEqual([]);
    const ids = sink.callsOf('public.late').flatMap((call) => call.rows);
    expect(ids.length).toBe(100);
  });

  it('are refused before anything is done when one is not published', async () => {
    const { source, sink, running } = await streamingCopy();
    await source.query('create unlogged table late(id int primary key)');
    const calls = sink.calls.length;
    for (const name of ['public.late', 't', 'public.none'])
      await expect(running.backfill.add(['public.t', name])).rejects.toThrow(
        /no publication of the pipeline carries a table/,
      );
    await running.caughtUp();
    expect(sink.calls.length).toBe(calls);
  });
});
