import { describe, expect, it } from 'vitest';
import { capture, inserted, type Capture } from './support/capture.js';
import { changesIn, essence } from './support/delivered.js';
import { haltedFor, slotAndCheckpoint } from './support/halted.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';

const suite = useServer();

interface Subject extends Capture {
  readonly source: TestDatabase;
  readonly target: TestDatabase;
}

/** Captures the publications `p` and `q`; not started. */
async function both(schema: string): Promise<Subject> {
  const { source, target } = await sourceAndTarget(suite, schema);
  return {
    ...capture(source, { target, publication: ['p', 'q'] }),
    source,
    target,
  };
}

async function started(schema: string): Promise<Subject> {
  const subject = await both(schema);
  subject.pipeline.start();
  await subject.pipeline.whenStreaming();
  return subject;
}

describe('several publications', () => {
  it('give each row once, whatever the ways in which both carry it', async () => {
    const { source, pipeline, applied } = await started(
      `create table t(id int primary key); create schema s; create table s.u(id int primary key);
       create table root(id int primary key) partition by range (id);
       create table leaf partition of root for values from (0) to (10);
       create publication p for all tables; create publication q for table t, root, tables in schema s`,
    );
    await source.query(
      'insert into t values (1); insert into s.u values (2); insert into root values (3)',
    );
    await pipeline.caughtUp();
    expect(changesIn(applied).map(essence)).toEqual([
      { op: 'insert', relation: 'public.t', record: { id: 1 } },
      { op: 'insert', relation: 's.u', record: { id: 2 } },
      { op: 'insert', relation: 'public.leaf', record: { id: 3 } },
    ]);
  });

  it('give a row that passes the filter of any of them, once', async () => {
    const { source, pipeline, applied } = await started(
      `create table t(id int primary key); create publication p for table t where (id < 3);
       create publication q for table t where (id > 1 and id < 5)`,
    );
    await source.query('insert into t select generate_series(0, 6)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([0, 1, 2, 3, 4]);
  });

  it('give each operation that any of them publishes', async () => {
    const { source, pipeline, applied } = await started(
      `create table t(id int primary key, v int); create publication p for table t with (publish = 'insert');
       create publication q for table t with (publish = 'delete')`,
    );
    await source.query('insert into t values (1, 1)');
    await source.query('update t set v = 2');
    await source.query('delete from t');
    await pipeline.caughtUp();
    expect(changesIn(applied).map(({ op }) => op)).toEqual([
      'insert',
      'delete',
    ]);
  });

  it('halt by the names of all that are missing, before anything is created', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline, applied } = capture(source, {
      target,
      publication: ['nope', 'p', 'No "such"'],
    });
    for (let round = 0; round < 2; round++) {
      pipeline.start();
      const halt = await haltedFor(pipeline, 'publication/missing');
      expect(halt.detail).toBe('no publication nope, "No ""such"""');
      expect(await slotAndCheckpoint(source, target)).toMatchObject({
        slots: [],
        checkpoints: [],
      });
    }
    await source.query(
      'create publication nope; create publication "No ""such""" for table t',
    );
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query(`insert into t values (1, 'a')`);
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1]);
  });
});

describe('column lists of several publications (R02)', () => {
  it.each([
    [
      'two lists',
      'create publication p for table "T t"(id, a); create publication q for table "T t"(id, b)',
      'p, q publish different columns of public."T t"; p publishes id, a',
    ],
    [
      'a list and none',
      'create publication p for table "T t"; create publication q for table "T t"(id, b)',
      'p, q publish different columns of public."T t"; q publishes id, b',
    ],
    [
      'a list and all tables',
      'create publication p for all tables; create publication q for table "T t"(id, b)',
      'p, q publish different columns of public."T t"; q publishes id, b',
    ],
    [
      'a list and a schema',
      'create publication p for table "T t"(id); create publication q for tables in schema public',
      'p, q publish different columns of public."T t"; p publishes id',
    ],
  ])('that differ halt by name: %s', async (_, publish, detail) => {
    const { source, target, pipeline, applied } = await both(
      `create table "T t"(id int primary key, a int, b int); ${publish}`,
    );
    for (let round = 0; round < 2; round++) {
      pipeline.start();
      const halt = await haltedFor(pipeline, 'publication/column_lists');
      expect(halt.detail).toBe(detail);
      expect(await slotAndCheckpoint(source, target)).toMatchObject({
        slots: [],
        checkpoints: [],
      });
    }
    await source.query(
      'drop publication p; create publication p for table "T t"(b, id); drop publication q; create publication q for table "T t"(id, b)',
    );
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into "T t" values (1, 2, 3)');
    await pipeline.caughtUp();
    expect(changesIn(applied)).toMatchObject([{ record: { id: 1, b: 3 } }]);
  });

  it('that name every column are no different from none', async () => {
    const { source, pipeline, applied } = await started(
      `create table t(id int primary key, a int); create publication p for table t(id, a);
       create publication q for table t`,
    );
    await source.query('insert into t values (1, 2)');
    await pipeline.caughtUp();
    expect(changesIn(applied)).toMatchObject([{ record: { id: 1, a: 2 } }]);
  });

  it('that differed while rows were written halt, and the rows come through one of the publications alone', async () => {
    const { source, target, pipeline, applied } = await started(
      `create table t(id int primary key, a int); create publication p for table t;
       create publication q for table t`,
    );
    await source.query('insert into t values (1, 1)');
    await pipeline.caughtUp();
    await source.query('alter publication q set table t (id)');
    await source.query('insert into t values (2, 2)');
    const { detail } = await haltedFor(pipeline, 'command_error/permanent');
    expect(detail).toContain('0A000');
    const before = await slotAndCheckpoint(source, target);
    pipeline.start();
    await haltedFor(pipeline, 'publication/column_lists');
    // The server reads the lists as they were when the row was written.
    await source.query('alter publication q set table t');
    pipeline.start();
    await haltedFor(pipeline, 'command_error/permanent');
    expect(await slotAndCheckpoint(source, target)).toEqual(before);
    expect(inserted(applied, 'id')).toEqual([1]);

    const alone = capture(source, { target, publication: 'p' });
    alone.pipeline.start();
    await alone.pipeline.caughtUp();
    expect(changesIn(alone.applied)).toMatchObject([
      { record: { id: 2, a: 2 } },
    ]);
    await alone.pipeline.stop();
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (3, 3)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1, 3]);
  });

  it('leave the other columns out', async () => {
    const { source, pipeline, applied } = await started(
      `create table t(id int primary key, a int, secret text); create publication p for table t(id, a);
       create publication q for table t(a, id)`,
    );
    const listed = [{ name: 'id' }, { name: 'a' }];
    await source.query(`insert into t values (1, 1, 'planted-secret')`);
    await source.query(`update t set a = 2, secret = 'planted-secret'`);
    await pipeline.caughtUp();
    expect(changesIn(applied)).toMatchObject([
      { columns: listed, record: { id: 1, a: 1 } },
      { columns: listed, record: { id: 1, a: 2 } },
    ]);
    expect(JSON.stringify(applied)).not.toContain('secret');
  });
});
