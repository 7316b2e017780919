import { expect, it } from 'vitest';
import { capture, inserted } from './support/capture.js';
import { haltedFor, slotAndCheckpoint } from './support/halted.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';

const suite = useServer();

/** What a checkpoint table may be beside an ordinary one in `public`. */
const COLUMNS = `slot_name text, commit_lsn pg_lsn, confirmed_lsn pg_lsn, system_identifier text not null,
  timeline integer not null, relations jsonb, updated_at timestamptz not null default now(), primary key (slot_name)`;
const PLAIN = `create table replicant_checkpoints(${COLUMNS})`;
const PARTITIONED = `create table replicant_checkpoints(${COLUMNS}) partition by hash (slot_name);
  create schema parts; create table parts."P 0" partition of replicant_checkpoints for values with (modulus 1, remainder 0)`;

it.each([
  [
    'by name',
    PLAIN,
    'create publication p for table t, replicant_checkpoints',
    'run: alter publication p drop table public.replicant_checkpoints',
  ],
  [
    'by a list and a filter',
    PLAIN,
    'create publication p for table t, replicant_checkpoints (slot_name)',
    'run: alter publication p drop table public.replicant_checkpoints',
  ],
  [
    'by its schema',
    PLAIN,
    'create publication p for tables in schema public',
    'publish its tables by name, and run: alter publication p drop tables in schema public',
  ],
  [
    'with all tables',
    PLAIN,
    'create publication p for all tables',
    'begin; drop publication p; create publication p for table …; commit',
  ],
  [
    'by the schema of a partition',
    PARTITIONED,
    'create publication p for table t, tables in schema parts',
    'run: alter publication p drop tables in schema parts',
  ],
  [
    'by a partition',
    PARTITIONED,
    'create publication p for table t, parts."P 0"',
    'run: alter publication p drop table parts."P 0"',
  ],
  [
    'by the name of what it is part of, and under that name',
    PARTITIONED,
    'create publication p for table t, replicant_checkpoints with (publish_via_partition_root)',
    'run: alter publication p drop table public.replicant_checkpoints',
  ],
])(
  'a publication that carries the checkpoint table %s halts with the SQL that mends it',
  async (_, table, publish, mend) => {
    const { source } = await sourceAndTarget(
      suite,
      `create table t(id int primary key); ${table}; ${publish}`,
    );
    const { pipeline, applied } = capture(source, { target: source });
    const before = await slotAndCheckpoint(source, source);
    pipeline.start();
    const halt = await haltedFor(pipeline, 'preflight/self_feeding');
    expect(halt.detail).toContain(mend);
    expect(await slotAndCheckpoint(source, source)).toEqual(before);

    const sql = mend.replace(/^.*run: /, '').replace('…', 't');
    await source.query(sql);
    if (/drop tables in schema public/.test(sql))
      await source.query('alter publication p add table t');
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1]);
    // What the checkpoint of the first has written would come before the second.
    await source.query('insert into t values (2)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1, 2]);
    expect(applied).toHaveLength(2);
  },
);

it('the second of two publications halts too, by its quoted name', async () => {
  const { source } = await sourceAndTarget(
    suite,
    `create table t(id int primary key); ${PLAIN}; create publication p for table t;
     create publication "Q q" for table replicant_checkpoints`,
  );
  const { pipeline } = capture(source, {
    target: source,
    publication: ['p', 'Q q'],
  });
  pipeline.start();
  const halt = await haltedFor(pipeline, 'preflight/self_feeding');
  expect(halt.detail).toMatch(
    /^publication "Q q" carries .*; run: alter publication "Q q" drop table public.replicant_checkpoints$/,
  );
});

it.each([
  ['all tables', 'create publication p for all tables'],
  ['a schema', 'create publication p for tables in schema public'],
])(
  'an unlogged checkpoint table in a publication of %s feeds nobody',
  async (_, publish) => {
    const { source } = await sourceAndTarget(
      suite,
      `create table t(id int primary key); ${PLAIN}; alter table replicant_checkpoints set unlogged; ${publish}`,
    );
    const { pipeline, applied } = capture(source, { target: source });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1]);
  },
);
