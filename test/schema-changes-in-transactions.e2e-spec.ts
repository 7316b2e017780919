import { describe, expect, it } from 'vitest';
import type { SchemaChange } from '../lib/engine/model/schema-change.js';
import type { Transaction } from '../lib/engine/model/transaction.js';
import { capture, inserted } from './support/capture.js';
import { changesIn, essence, streaming } from './support/delivered.js';
import {
  compareTables,
  countApplied,
  NO_DIFFERENCE,
} from './support/compare-tables.js';
import { haltedFor } from './support/halted.js';
import { currentLsn } from './support/logical-slot.js';
import { mirroring } from './support/mirroring.js';
import { TABLE, toldBy } from './support/schema-changes.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { deferred, waitFor } from './support/wait-for.js';

const suite = useServer();
const N04 = `begin;
  insert into t values (1, 1);
  alter table t alter a type text using a::text;
  insert into t values (2, 'two');
  alter table t rename a to z;
  insert into t values (3, 'three');
  commit`;

describe('several changes in one transaction', () => {
  it('are asked about one after the other, and the transaction is delivered once, whole (N04)', async () => {
    const asked: SchemaChange[] = [];
    const { pipeline, run, applied, calls } = await streaming(
      suite,
      'create table t(id int primary key, a int)',
      { schemaChange: async (change) => void asked.push(change) },
    );
    const told = toldBy(pipeline);
    await run(N04);
    expect(changesIn(applied).map(essence)).toMatchObject([
      { record: { id: 1, a: 1 } },
      { record: { id: 2, a: 'two' } },
      { record: { id: 3, z: 'three' } },
    ]);
    expect(calls).toHaveLength(1);
    expect(asked).toMatchObject([
      {
        change: 'type_changed',
        detail: 'the type of "a" was int4 and is text',
      },
      { change: 'column_dropped', detail: 'dropped "a"' },
    ]);
    expect(told).toEqual(asked);
  });

  it('are asked about again when they are made again later', async () => {
    const asked: string[] = [];
    const { run, applied } = await streaming(suite, TABLE, {
      schemaChange: async ({ detail }) => void asked.push(detail),
    });
    await run(`insert into t values (1, 'a', 'b')`);
    for (const id of [2, 3]) {
      await run('alter table t alter b type varchar');
      await run(`insert into t values (${id}, 'a', 'b')`);
      await run('alter table t alter b type text');
      await run(`insert into t values (${id * 10}, 'a', 'b')`);
    }
    expect(inserted(applied, 'id')).toEqual([1, 2, 20, 3, 30]);
    expect(asked).toEqual([
      'the type of "b" was text and is varchar',
      'the type of "b" was varchar and is text',
      'the type of "b" was text and is varchar',
      'the type of "b" was varchar and is text',
    ]);
  });
});

describe('the sink', () => {
  it('is asked while no handler runs, when everything before is durable', async () => {
    let running = 0;
    const durable: number[] = [];
    const atHook: unknown[] = [];
    const release = deferred();
    const { pipeline, source, checkpoints, applied } = await streaming(
      suite,
      TABLE,
      {
        async apply(transaction: Transaction) {
          running += 1;
          await release.promise;
          durable.push(...inserted([transaction], 'id').map(Number));
          running -= 1;
        },
        async schemaChange() {
          atHook.push(
            running,
            [...durable],
            (await checkpoints.load())?.commitLsn,
          );
        },
      },
    );
    for (const id of [1, 2, 3])
      await source.query(`insert into t values (${id}, 'a', 'b')`);
    await source.query('alter table t drop column b');
    await source.query(`insert into t values (4, 'a')`);
    await source.query(`insert into t values (5, 'a')`);
    await waitFor(() => running === 1);
    expect(atHook).toEqual([]);
    release.resolve();
    await pipeline.caughtUp(await currentLsn(source));
    expect(atHook).toEqual([0, [1, 2, 3], applied[2]?.commitLsn]);
    expect(durable).toEqual([1, 2, 3, 4, 5]);
  });

  it('may stop the pipeline in its method, and is asked again after the next start', async () => {
    let asked = 0;
    const { pipeline, run, source, applied } = await streaming(suite, TABLE, {
      async schemaChange() {
        asked += 1;
        if (asked === 1) {
          await pipeline.stop();
          throw new Error('not now');
        }
      },
    });
    await run(`insert into t values (1, 'a', 'b')`);
    await source.query('alter table t drop column b');
    await source.query(`insert into t values (2, 'a')`);
    await waitFor(() => pipeline.state === 'stopped');
    pipeline.start();
    await pipeline.whenStreaming();
    await pipeline.caughtUp(await currentLsn(source));
    expect(inserted(applied, 'id')).toEqual([1, 2]);
    expect(asked).toBe(2);
  });

  it('is waited for by a stop, within the time to drain, and by the next start for ever', async () => {
    let asked = 0;
    const release = deferred();
    const { pipeline, run, source, applied } = await streaming(suite, TABLE, {
      drainTimeout: 300,
      schemaChange() {
        asked += 1;
        return release.promise;
      },
    });
    await run(`insert into t values (1, 'a', 'b')`);
    await source.query('alter table t drop column b');
    await source.query(`insert into t values (2, 'a')`);
    await waitFor(() => asked === 1);
    expect(pipeline.state).toBe('reconnecting');
    expect(pipeline.reason).toContain('public.t: dropped "b"');
    const began = performance.now();
    await pipeline.stop();
    expect(performance.now() - began).toBeGreaterThan(250);
    expect(pipeline.state).toBe('stopped');
    pipeline.start();
    expect(pipeline.state).toBe('connecting');
    release.resolve();
    await pipeline.whenStreaming();
    await pipeline.caughtUp(await currentLsn(source));
    expect(inserted(applied, 'id')).toEqual([1, 2]);
    expect(asked).toBe(1);
  });

  it('that returns no promise has not accepted', async () => {
    const { pipeline, run, source } = await streaming(suite, TABLE, {
      schemaChange: () => true,
    });
    await run(`insert into t values (1, 'a', 'b')`);
    await source.query('alter table t drop column b');
    await source.query(`insert into t values (2, 'a')`);
    const halt = await haltedFor(pipeline, 'schema_change/rejected');
    expect(halt.detail).toBe(
      'public.t: dropped "b"; the method of TestSink returned no promise',
    );
  });
});

describe('a change inside a transaction that is read while it arrives', () => {
  const LARGE = `insert into t select g, repeat('x', 2000), null from generate_series(1, 5000) g`;

  it('ends its changes, is asked about when the handler has settled, and brings it again, whole', async () => {
    const events: string[] = [];
    const { pipeline, run, source, applied, calls } = await streaming(
      suite,
      TABLE,
      {
        async apply({ changes }) {
          let count = 0;
          try {
            for await (const _ of changes) count += 1;
            events.push(`read ${count}`);
          } catch (error) {
            await new Promise((resolve) => setTimeout(resolve, 50));
            events.push(String(error));
            throw error;
          }
        },
        schemaChange: async ({ detail }) => void events.push(detail),
      },
    );
    await run(`insert into t values (0, 'a', 'b')`);
    await source.query(
      `begin; ${LARGE}; alter table t drop column b; insert into t values (-1, 'y'); commit`,
    );
    await pipeline.caughtUp(await currentLsn(source));
    expect(events).toEqual([
      'read 1',
      'ConnectionFault: the schema changed inside a transaction: public.t: dropped "b"',
      'dropped "b"',
      'read 5001',
    ]);
    expect(calls).toHaveLength(3);
    expect(applied).toHaveLength(2);
    expect(pipeline.halt).toBeNull();
  });

  it('is stored, so that it is not asked about by the next process', async () => {
    const { pipeline, run, source, target } = await streaming(suite, TABLE, {
      schemaChange: async () => {},
      async apply({ changes }) {
        for await (const _ of changes);
      },
    });
    await run(`insert into t values (0, 'a', 'b')`);
    await source.query(
      `begin; ${LARGE}; alter table t drop column b; insert into t values (-1, 'y'); commit`,
    );
    await pipeline.caughtUp(await currentLsn(source));
    await pipeline.stop();
    const next = capture(source, { target });
    next.pipeline.start();
    await source.query(`insert into t values (-2, 'y')`);
    await next.pipeline.whenStreaming();
    await next.pipeline.caughtUp(await currentLsn(source));
    expect(next.applied).toHaveLength(1);
    expect(next.pipeline.halt).toBeNull();
  });

  it('halts when the handler resolves all the same', async () => {
    const { pipeline, run, source } = await streaming(suite, TABLE, {
      async apply({ changes }) {
        try {
          for await (const _ of changes);
        } catch {
          // As a sink must not do it.
        }
      },
      schemaChange: async () => {},
    });
    await run(`insert into t values (0, 'a', 'b')`);
    await source.query(
      `begin; ${LARGE}; alter table t drop column b; insert into t values (-1, 'y'); commit`,
    );
    await haltedFor(pipeline, 'sink_failed/partial_transaction');
  });
});

/** What a sink does that mirrors tables `(id, v)`: one that has lost its name waits under its OID for the next. */
async function follow(
  { change, before, after }: SchemaChange,
  target: TestDatabase,
): Promise<void> {
  const parked = `parked_${before.oid}`;
  switch (change) {
    case 'table_replaced':
      await target.query(
        `alter table ${after.table} rename to ${parked};
         create table ${after.table}(id int primary key, v text)`,
      );
      return;
    case 'table_renamed': {
      const [found] = await target.query('select to_regclass($1)::text as is', [
        parked,
      ]);
      await target.query(
        `drop table if exists ${after.table};
         alter table ${found?.['is'] === null ? before.table : parked} rename to ${after.table}`,
      );
      return;
    }
    case 'column_dropped':
      await target.query(`alter table ${after.table} drop column v`);
      return;
    default:
      await target.query(`alter table ${after.table} alter v type varchar(50)`);
  }
}

describe('a mirror that follows destructive changes', () => {
  it('has every row once: renamed, replaced and swapped tables, dropped and retyped columns', async () => {
    const followed: string[] = [];
    const { run, source, target, pipeline } = await mirroring(
      suite,
      'create table a(id int primary key, v text); create table b(id int primary key, v text)',
      async (change, on) => {
        followed.push(`${change.change} ${change.relation}`);
        await follow(change, on);
      },
    );
    await run(
      `insert into a values (1, 'of a'); insert into b values (1, 'of b')`,
    );
    await source.query(
      'alter table a rename to tmp; alter table b rename to a; alter table tmp rename to b',
    );
    await run(`insert into a values (2, 'of b')`);
    await run(`insert into b values (2, 'of a')`);
    expect(followed).toEqual([
      'table_replaced public.a',
      'table_renamed public.b',
      'table_renamed public.a',
    ]);
    expect(await compareTables(source, target)).toEqual(NO_DIFFERENCE);

    await source.query(
      'drop table a; create table a(id int primary key, v text)',
    );
    await run(`insert into a values (7, 'new')`);
    await source.query('alter table b alter v type varchar(50)');
    await run(`insert into b values (8, 'c')`);
    await source.query('alter table a drop column v');
    await run(`insert into a values (9)`);
    expect(followed.slice(3)).toEqual([
      'table_replaced public.a',
      'type_changed public.b',
      'column_dropped public.a',
    ]);
    expect(await compareTables(source, target)).toEqual(NO_DIFFERENCE);
    expect((await countApplied(target)).appliedTwice).toBe(0);
    expect(pipeline.halt).toBeNull();
  });

  it('is asked in both directions about names that swap while no row comes', async () => {
    const followed: string[] = [];
    const { run, source, target } = await mirroring(
      suite,
      'create table a(id int primary key, v text); create table b(id int primary key, v text)',
      async (change, on) => {
        followed.push(`${change.change} ${change.relation}`);
        await follow(change, on);
      },
    );
    await run(
      `insert into a values (1, 'of a'); insert into b values (1, 'of b')`,
    );
    const swap =
      'alter table a rename to tmp; alter table b rename to a; alter table tmp rename to b';
    for (const id of [2, 3, 4]) {
      await source.query(swap);
      await run(
        `insert into a values (${id}, 'x'); insert into b values (${id}, 'y')`,
      );
      expect(await compareTables(source, target)).toEqual(NO_DIFFERENCE);
    }
    // Twice is back: nothing to notice.
    await source.query(`${swap}; ${swap}`);
    await run(`insert into b values (5, 'z')`);
    expect(await compareTables(source, target)).toEqual(NO_DIFFERENCE);
    expect(followed).toHaveLength(9);
  });
});

describe('partitions', () => {
  const PARTED = `create table r(id int primary key, v text) partition by range (id);
    create table r1 partition of r for values from (0) to (100);
    create table r2 partition of r for values from (100) to (200);`;
  const ROTATE = `alter table r detach partition r1; alter table r1 rename to old;
    create table r1 partition of r for values from (0) to (100)`;

  it('that are published as their root concern nobody when they are replaced', async () => {
    const { run, applied, pipeline } = await streaming(
      suite,
      `${PARTED} create publication p for table r with (publish_via_partition_root)`,
    );
    const told = toldBy(pipeline);
    await run(`insert into r values (1, 'a'), (101, 'b')`);
    await run(ROTATE);
    await run('alter table r2 alter v set statistics 10');
    await run(`insert into r values (2, 'a'), (102, 'b')`);
    expect(inserted(applied, 'id')).toEqual([1, 101, 2, 102]);
    expect(told).toEqual([]);
    await run('alter table r add column c int');
    await run(`insert into r values (3, 'a', 1)`);
    expect(told).toMatchObject([
      { change: 'column_added', relation: 'public.r' },
    ]);
    expect(pipeline.halt).toBeNull();
  });

  it('that are published by themselves are tables like others', async () => {
    const { run, source, pipeline } = await streaming(
      suite,
      `${PARTED} create publication p for table r`,
    );
    await run(`insert into r values (1, 'a'), (101, 'b')`);
    await run(ROTATE);
    await source.query(`insert into r values (2, 'a')`);
    const halt = await haltedFor(pipeline, 'schema_change/destructive');
    expect(halt.detail).toMatch(/^public\.r1: the table of this name had/);
  });
});
