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

it('a row does not go back to what an asynchronous commit has left behind', async () => {
  const source = await suite.database();
  await source.query(
    `create table t(id int primary key, v int); insert into t values (1, 0); create publication p for table t`,
  );
  const sink = await Sink.create(source);
  const running = await Backfilling.start(sink);
  await running.complete();
  const seen: unknown[] = [];
  const put = sink.mirror.fill.bind(sink.mirror);
  sink.mirror.fill = (row) => {
    seen.push(row.record['v']);
    put(row);
  };
  const change = sink.mirror.change.bind(sink.mirror);
  sink.mirror.change = (message) => {
    if (message.kind === 'update') seen.push(message.record['v']);
    change(message);
  };
  const writer = await source.connect();
  await writer.query('set synchronous_commit = off');
  await writer.query('update t set v = 1');
  await writer.query('update t set v = 2');
  await running.backfill.add(['public.t']);
  await running.caughtUp();
  expect(seen).toEqual(
    seen.toSorted((one, other) => Number(one) - Number(other)),
  );
});
