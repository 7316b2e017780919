import { describe, expect, it } from 'vitest';
import { changesIn, essence, streaming } from './support/delivered.js';
import { useServer } from './support/suite.js';

const suite = useServer();

describe('partitions', () => {
  it('come and go without a message: their rows are under the root from attaching to detaching (P03)', async () => {
    const { run, applied, pipeline } = await streaming(
      suite,
      `create table m(id int primary key) partition by range(id);
       create table l1 partition of m for values from (0) to (10);
       create table l2(id int primary key);
       create publication p for table m with (publish_via_partition_root = true)`,
    );
    await run('insert into l2 values (11)');
    await run('insert into m values (1)');
    await run('alter table m attach partition l2 for values from (10) to (20)');
    await run('insert into l2 values (12)');
    await run('alter table m detach partition l1');
    await run('insert into l1 values (2)');
    await run('insert into m values (13)');
    const relation = 'public.m';
    expect(changesIn(applied).map(essence)).toEqual(
      [1, 12, 13].map((id) => ({ op: 'insert', relation, record: { id } })),
    );
    expect(pipeline.halt).toBeNull();
  });

  it('that are tables by inheritance come under their own names (P05)', async () => {
    const { run, applied } = await streaming(
      suite,
      `create schema _timescaledb_internal;
       create table metrics(ts timestamptz not null, v float8);
       create table _timescaledb_internal._hyper_1_1_chunk(check (ts >= '2026-01-01')) inherits (metrics);
       create publication p for table metrics`,
    );
    await run(
      `insert into _timescaledb_internal._hyper_1_1_chunk values ('2026-02-01', 1)`,
    );
    expect(changesIn(applied).map(essence)).toEqual([
      {
        op: 'insert',
        relation: '_timescaledb_internal._hyper_1_1_chunk',
        record: { ts: '2026-02-01T00:00:00.000000Z', v: 1 },
      },
    ]);
  });
});
