import { expect, it } from 'vitest';
import { Backfilling, Sink } from './support/backfilling.js';
import { useServer } from './support/suite.js';

const suite = useServer({
  settings: { wal_writer_delay: '10s' },
});

it('a row that was committed asynchronously to a table without a key is there once', async () => {
  const source = await suite.database();
  await source.query(
    `create table t(v text); insert into t values ('before'); create publication p for table t`,
  );
  const sink = await Sink.create(source, ['public.t']);
  const running = await Backfilling.start(sink);
  await running.complete();
  const writer = await source.connect();
  await writer.query('set synchronous_commit = off');
  await writer.query(`insert into t values ('unflushed')`);
  await running.backfill.add(['public.t']);
  await running.caughtUp();
  expect(await sink.mirror.differences(source, 'public.t')).toEqual([]);
});
