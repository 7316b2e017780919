import { describe, expect, it } from 'vitest';
import { capture, inserted } from './support/capture.js';
import { changesIn, essence, streaming } from './support/delivered.js';
import { currentLsn } from './support/logical-slot.js';
import { useServer } from './support/suite.js';

const suite = useServer();

describe('a publication', () => {
  it('through the root of a partitioned table gives every row under the root (P01)', async () => {
    const { run, applied } = await streaming(
      suite,
      `create table m(id int, d date, v text, primary key(id, d)) partition by range(d);
       create table m_2025 partition of m for values from ('2025-01-01') to ('2026-01-01');
       create table m_2026 partition of m for values from ('2026-01-01') to ('2027-01-01');
       create publication p for table m with (publish_via_partition_root = true)`,
    );
    await run(
      `insert into m values (1, '2025-06-01', 'a'), (2, '2026-06-01', 'b')`,
    );
    await run(`update m set d = '2026-07-01' where id = 1`);
    const relation = 'public.m';
    expect(changesIn(applied).map(essence)).toEqual([
      { op: 'insert', relation, record: { id: 1, d: '2025-06-01', v: 'a' } },
      { op: 'insert', relation, record: { id: 2, d: '2026-06-01', v: 'b' } },
      {
        op: 'delete',
        relation,
        old: { kind: 'key', record: { id: 1, d: '2025-06-01' } },
      },
      { op: 'insert', relation, record: { id: 1, d: '2026-07-01', v: 'a' } },
    ]);
    expect(applied).toHaveLength(2);
  });

  it('of some operations gives those alone, and the rest does not hold back the slot (R04)', async () => {
    const { run, applied } = await streaming(
      suite,
      `create table t(id int primary key); create publication p for table t with (publish = 'insert')`,
    );
    await run('insert into t values (1)');
    await run('update t set id = 2');
    await run('delete from t');
    await run('truncate t');
    await run('insert into t values (3)');
    expect(changesIn(applied).map(essence)).toEqual([
      { op: 'insert', relation: 'public.t', record: { id: 1 } },
      { op: 'insert', relation: 'public.t', record: { id: 3 } },
    ]);
  });

  it('that shares a table with another gives each row once', async () => {
    const source = await suite.database();
    await source.query(
      `create table t(id int primary key); create table u(id int primary key);
       create publication p for table t; create publication q for table t, u`,
    );
    const { pipeline, applied } = capture(source, {
      target: await suite.database('target'),
      publication: ['p', 'q'],
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await source.query('insert into u values (2)');
    await pipeline.caughtUp(await currentLsn(source));
    expect(inserted(applied, 'id')).toEqual([1, 2]);
  });
});
