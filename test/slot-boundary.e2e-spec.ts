import { expect, it } from 'vitest';
import { formatLsn, type Lsn, parseLsn } from '../lib/engine/model/lsn.js';
import { capture, inserted } from './support/capture.js';
import { range } from './support/copy.js';
import { present } from './support/present.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '4s' } });

const BEGIN = 'B'.charCodeAt(0);

/** Commit positions of what the server has for the slot, as the server itself decodes it. */
async function pending(
  source: TestDatabase,
  slot: string,
  changes: number | null = null,
): Promise<Lsn[]> {
  const rows = await source.query<{ data: Buffer }>(
    `select data from pg_logical_slot_peek_binary_changes($1, null, $2::int, 'proto_version', '1', 'publication_names', 'p')`,
    [slot, changes],
  );
  return rows
    .filter(({ data }) => data[0] === BEGIN)
    .map(({ data }) => data.readBigUInt64BE(1));
}

it('a transaction whose commit record starts exactly where the slot is, is delivered', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const slot = `slot_${source.name}`;
  await source.query(
    `select pg_create_logical_replication_slot($1, 'pgoutput')`,
    [slot],
  );
  for (const id of range(1, 3))
    await source.query('insert into t values ($1)', [id]);
  const second = present((await pending(source, slot))[1]);
  await source.query(
    'select pg_replication_slot_advance($1, $2::text::pg_lsn)',
    [slot, formatLsn(second)],
  );
  const { pipeline, applied } = capture(source, { target });
  pipeline.start();
  await pipeline.caughtUp();
  expect(inserted(applied, 'id')).toEqual([2, 3]);
  expect(applied[0]?.commitLsn).toBe(second);
});

it('a transaction whose commit record starts exactly at the stored position is delivered after a restart', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const slot = `slot_${source.name}`;
  const { pipeline, applied } = capture(source, { target });
  pipeline.start();
  await pipeline.whenStreaming();
  await pipeline.stop();
  for (const id of range(1, 3))
    await source.query('insert into t values ($1)', [id]);
  const second = present((await pending(source, slot))[1]);
  await target.query(
    'update replicant_checkpoints set confirmed_lsn = $1::text::pg_lsn',
    [formatLsn(second)],
  );
  pipeline.start();
  await pipeline.caughtUp();
  expect(inserted(applied, 'id')).toEqual([2, 3]);
});

it('slots created under concurrent writers lose nothing, also those with a commit exactly at their beginning', async () => {
  const { source, target } = await sourceAndTarget(
    suite,
    'create table t(id bigint generated always as identity primary key); create publication p for table t',
  );
  const written = new AbortController();
  // Each is open for a moment, so that a slot begins among commits of transactions that were open meanwhile.
  const write = async (): Promise<void> => {
    const client = await source.connect();
    while (!written.signal.aborted)
      await client.query(
        'do $$ begin for i in 1..20 loop insert into t default values; perform pg_sleep(0.002); commit; end loop; end $$',
      );
  };
  const writers = range(1, 8).map(() => write());
  const slot = `slot_${source.name}`;
  let boundary: Lsn | null = null;
  try {
    for (let tries = 0; boundary === null; tries++) {
      expect(tries, 'slots without such a commit').toBeLessThan(50);
      const [row] = await source.query<{ lsn: string }>(
        `select lsn::text from pg_create_logical_replication_slot($1, 'pgoutput')`,
        [slot],
      );
      const point = present(parseLsn(row?.lsn ?? ''));
      const [first] = await waitFor(async () => {
        const some = await pending(source, slot, 1);
        return some.length > 0 && some;
      });
      if (first === point) boundary = point;
      else await source.query('select pg_drop_replication_slot($1)', [slot]);
    }
  } finally {
    written.abort();
    await Promise.all(writers);
  }
  const expected = await pending(source, slot);
  const { pipeline, applied } = capture(source, { target });
  pipeline.start();
  await pipeline.caughtUp();
  expect(applied.map(({ commitLsn }) => commitLsn)).toEqual(expected);
  expect(expected[0]).toBe(boundary);
}, 60_000);
