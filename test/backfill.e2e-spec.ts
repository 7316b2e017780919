import { describe, expect, it } from 'vitest';
import { Backfilling, Sink } from './support/backfilling.js';
import { MIXED_TABLES, MixedWriter } from './support/mixed-writer.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

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
    const sink = await Sink.create(source);
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
});
