import { expect, it } from 'vitest';
import { copying } from './support/copying.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer();

const MODES = ['initial', 'incremental'] as const;

it.each(MODES)(
  'partitions are copied once under their root, and rows go from one to another meanwhile: %s (P01)',
  async (mode) => {
    const { source, target } = await sourceAndTarget(
      suite,
      `create table m(id int, d date, v text, primary key (id, d)) partition by range (d);
       create table m_2025 partition of m for values from ('2025-01-01') to ('2026-01-01');
       create table m_2026 partition of m for values from ('2026-01-01') to ('2027-01-01');
       insert into m select g, '2025-06-01', 'a' from generate_series(1, 2000) g;
       insert into m select g, '2026-06-01', 'b' from generate_series(2001, 4000) g;
       create publication p for table m with (publish_via_partition_root = true)`,
    );
    await target.query(
      'create table m(id int, d date, v text, primary key (id, d))',
    );
    let moved = false;
    const { pipeline, copied } = copying(source, {
      target,
      snapshot: mode === 'initial' ? true : { mode, chunkRows: 200 },
      afterRows: async ({ rows }) => {
        if (moved || rows.length === 0) return;
        moved = true;
        await source.query(
          "update m set d = '2026-07-01' where id in (1, 1999); update m set d = '2025-07-01' where id in (2001, 3999)",
        );
      },
    });
    pipeline.start();
    await waitFor(() => pipeline.status().snapshot?.state === 'complete');
    await pipeline.whenStreaming();
    await pipeline.caughtUp();
    const all = 'select id, d::text, v from m order by id, d';
    expect(await target.query(all)).toEqual(await source.query(all));
    expect(
      new Set(copied.flatMap(({ rows }) => rows.map((row) => row.relation))),
    ).toEqual(new Set(['public.m']));
  },
);

it.each(MODES)(
  'rows and columns that are not published are not copied, and those of the sink stay: %s (R01, R02)',
  async (mode) => {
    const { source, target } = await sourceAndTarget(
      suite,
      `create table t(id int primary key, a int, secret text, g int generated always as (a * 2) stored);
       insert into t(id, a, secret) select g, g, 'secret' from generate_series(1, 1500) g;
       create publication p for table t(id, a) where (id % 3 = 0)`,
    );
    await target.query(
      "create table t(id int primary key, a int, secret text default 'kept')",
    );
    const { pipeline, copied } = copying(source, {
      target,
      snapshot: mode === 'initial' ? true : { mode, chunkRows: 200 },
    });
    pipeline.start();
    await waitFor(() => pipeline.status().snapshot?.state === 'complete');
    await pipeline.whenStreaming();
    await source.query(
      'update t set a = 0 where id in (6, 7); insert into t(id, a) values (3000, 1), (3001, 1)',
    );
    await pipeline.caughtUp();
    expect(
      await target.query('select id, a, secret from t order by id'),
    ).toEqual(
      await source.query(
        "select id, a, 'kept' as secret from t where id % 3 = 0 order by id",
      ),
    );
    expect(
      copied.flatMap(({ rows }) =>
        rows.map(({ record }) => Object.keys(record).join()),
      ),
    ).toEqual(Array.from({ length: 500 }, () => 'id,a'));
  },
);
