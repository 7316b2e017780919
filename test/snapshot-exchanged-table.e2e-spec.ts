import { expect, it } from 'vitest';
import { Backfilling, Sink } from './support/backfilling.js';
import { useServer } from './support/suite.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer();

it('a table that took the name of one of which a part was copied is copied from its beginning', async () => {
  const source = await suite.database();
  await source.query(
    `create table t(id int primary key, v text); insert into t select g, 'old' from generate_series(1, 300) g;
     create table next(id int primary key, v text); insert into next select g, 'new' from generate_series(1, 300) g;
     create publication p for table t`,
  );
  const sink = await Sink.create(source);
  const first = await Backfilling.start(sink, {
    chunkRows: 100,
    maxPendingChunks: 1,
  });
  await waitFor(() => sink.calls.length >= 2);
  await first.stop();
  expect(sink.isComplete).toBe(false);
  await source.query(
    'drop table t; alter table next rename to t; alter publication p add table t',
  );
  const running = await Backfilling.start(sink);
  await running.complete();
  expect(await sink.mirror.differences(source, 'public.t')).toEqual([]);
});
