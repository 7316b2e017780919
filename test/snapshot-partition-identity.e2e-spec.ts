import { expect, it } from 'vitest';
import { Backfilling, Sink } from './support/backfilling.js';
import { useServer } from './support/suite.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer();

it('rows of a partitioned table with REPLICA IDENTITY FULL are told apart where its partitions have another', async () => {
  const source = await suite.database();
  // The command reaches the root alone, and a partition does not inherit it.
  await source.query(
    `create table r(id int primary key, v text) partition by list (id);
     create table r1 partition of r default; alter table r replica identity full;
     insert into r select g, 'old' from generate_series(1, 3) g;
     create publication p for table r with (publish_via_partition_root = true)`,
  );
  const sink = await Sink.create(source);
  const server = await suite.database('settings');
  const writers = [await source.connect(), await source.connect()];
  // Commits are streamed, and not visible as long as they wait for a standby.
  await server.query(`alter system set synchronous_standby_names = 'nobody'`);
  await server.query('select pg_reload_conf()');
  await waitFor(async () => {
    const [row] = await server.query<{ is: boolean }>(
      "select current_setting('synchronous_standby_names') = 'nobody' as is",
    );
    return row?.is;
  });
  const written = Promise.all([
    writers[0]?.query(`update r set v = 'new' where id = 1`),
    writers[1]?.query('delete from r where id = 2'),
  ]);
  try {
    await waitFor(async () => {
      const waiting = await server.query(
        "select from pg_stat_activity where wait_event = 'SyncRep'",
      );
      return waiting.length === 2;
    });
    const running = await Backfilling.start(sink);
    await running.complete();
    const copied = sink
      .callsOf('public.r')
      .flatMap(({ rows }) => rows.map(({ record }) => record['id']));
    expect(copied).toEqual(['3']);
  } finally {
    await server.query('alter system reset synchronous_standby_names');
    await server.query('select pg_reload_conf()');
    await written;
  }
});
