import { describe, expect, it } from 'vitest';
import { capture, inserted } from '../support/capture.js';
import { changesOf } from '../support/changes-of.js';
import { haltedFor, slotAndCheckpoint } from '../support/halted.js';
import { noPluginServer, usePluginServer } from '../support/plugin-suite.js';
import { sourceAndTarget } from '../support/source-and-target.js';

const TABLES = [['public', 't']] as const;
const TABLE = 'create table t(id int primary key, v text)';
const NOTHING = { slots: [], checkpoints: [] };

describe.skipIf(noPluginServer)('a table that wal2json is asked for', () => {
  const suite = usePluginServer();

  it.each([
    ['select', 'public.t does not exist'],
    ['create table "T"(id int primary key)', 'public.t does not exist'],
    ['create temp table t(id int)', 'public.t does not exist'],
    [
      'create table t(id int primary key) partition by hash (id)',
      'public.t is partitioned, and the plugin sends its partitions: name these instead',
    ],
    ['create view t as select 1 as id', 'public.t is no table'],
    ['create materialized view t as select 1 as id', 'public.t is no table'],
    ['create sequence t', 'public.t is no table'],
    [
      'create unlogged table t(id int primary key)',
      'public.t is not in the WAL, because it is unlogged or temporary',
    ],
  ])('is missing after: %s', async (ddl, detail) => {
    const { source, target } = await sourceAndTarget(suite, ddl);
    const { pipeline, applied } = capture(source, {
      target,
      decoder: 'wal2json',
      tables: TABLES,
    });
    pipeline.start();
    const halt = await haltedFor(pipeline, 'decoder/table_missing');
    expect(halt.detail).toBe(detail);
    expect(await slotAndCheckpoint(source, target)).toEqual(NOTHING);
    for (const kind of ['table', 'view', 'materialized view', 'sequence'])
      await source.query(
        `do $$ begin drop ${kind} if exists public.t; exception when wrong_object_type then null; end $$`,
      );
    await source.query(TABLE.replace(' t(', ' public.t('));
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into public.t values (1)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1]);
  });

  it('is missing although another of the list is there, and is named with its quotes, as all that are missing', async () => {
    const { source, target } = await sourceAndTarget(suite, TABLE);
    const { pipeline } = capture(source, {
      target,
      decoder: 'wal2json',
      tables: [...TABLES, ['Odd "schema"', 'it is, not.here'], ['public', 'z']],
    });
    pipeline.start();
    const halt = await haltedFor(pipeline, 'decoder/table_missing');
    expect(halt.detail).toBe(
      '"Odd ""schema"""."it is, not.here" does not exist; public.z does not exist',
    );
  });

  const KEYLESS: [what: string, ddl: string][] = [
    ['no primary key', 'create table t(id int, v text)'],
    [
      'the identity nothing',
      `${TABLE}; alter table t replica identity nothing`,
    ],
    [
      'a unique index that is not its identity',
      'create table t(id int not null unique, v text)',
    ],
    [
      'an identity whose index was dropped',
      'create table t(id int not null unique, v text); alter table t replica identity using index t_id_key; alter table t drop constraint t_id_key',
    ],
    [
      'a primary key that is checked at the end of a transaction',
      'create table t(id int primary key deferrable, v text)',
    ],
  ];

  it.each(KEYLESS)('is keyless with %s (13.9 no. 80)', async (_, ddl) => {
    const { source, target } = await sourceAndTarget(suite, ddl);
    const options = { target, decoder: 'wal2json', tables: TABLES } as const;
    const refused = capture(source, options);
    refused.pipeline.start();
    const halt = await haltedFor(refused.pipeline, 'decoder/table_keyless');
    expect(halt.detail).toBe('public.t has no replica identity');
    expect(await slotAndCheckpoint(source, target)).toEqual(NOTHING);

    // Only inserts come.
    const { pipeline, applied } = capture(source, {
      ...options,
      allowKeylessTables: true,
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query(`insert into t values (1, 'a'), (2, 'b')`);
    await source.query(`update t set v = 'c' where id = 1`);
    await source.query('update t set id = 3 where id = 2');
    await source.query('delete from t where id = 3');
    await source.query(`insert into t values (4, 'd')`);
    await source.query('truncate t');
    await pipeline.caughtUp();
    expect(
      applied.map((transaction) =>
        changesOf(transaction).map((change) =>
          change.op === 'insert' ? change.record['id'] : change.op,
        ),
      ),
    ).toEqual([[1, 2], [4], ['truncate']]);
    expect(pipeline.halt).toBeNull();
    await pipeline.stop();

    // With the identity that the remedy gives, all of it.
    await source.query('alter table t replica identity full');
    await source.query(`insert into t values (5, 'e')`);
    await source.query('delete from t where id = 5');
    const whole = capture(source, { ...options, schemaChange: async () => {} });
    whole.pipeline.start();
    await whole.pipeline.caughtUp();
    expect(whole.applied.flatMap(changesOf)).toMatchObject([
      { op: 'insert', record: { id: 5 } },
      { op: 'delete', old: { kind: 'full', record: { id: 5, v: 'e' } } },
    ]);
  });

  it('can be captured under the full identity without a key', async () => {
    const { source, target } = await sourceAndTarget(
      suite,
      'create table t(id int, v text); alter table t replica identity full',
    );
    const { pipeline, applied } = capture(source, {
      target,
      decoder: 'wal2json',
      tables: TABLES,
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query(`insert into t values (1, 'a')`);
    await source.query(`update t set v = 'b'`);
    await source.query('delete from t');
    await pipeline.caughtUp();
    expect(applied.flatMap(changesOf)).toMatchObject([
      { op: 'insert' },
      { op: 'update', old: { kind: 'full', record: { id: 1, v: 'a' } } },
      { op: 'delete', old: { kind: 'full', record: { id: 1, v: 'b' } } },
    ]);
  });

  it.each([
    ['update', `update t set v = 'b'`],
    ['delete', 'delete from t'],
  ])(
    'is keyless when it has lost its primary key before the %s that is left out',
    async (_, sql) => {
      const { source, target } = await sourceAndTarget(suite, TABLE);
      const { pipeline, applied } = capture(source, {
        target,
        decoder: 'wal2json',
        tables: TABLES,
      });
      pipeline.start();
      await pipeline.whenStreaming();
      await source.query(`insert into t values (1, 'a')`);
      await pipeline.caughtUp();
      await source.query('alter table t drop constraint t_pkey');
      await source.query(sql);
      const halt = await haltedFor(pipeline, 'decoder/table_keyless');
      expect(halt.detail).toContain('wal2json has left out');
      expect(inserted(applied, 'id')).toEqual([1]);
    },
  );

  it('may not be that of the checkpoint', async () => {
    const { source, target } = await sourceAndTarget(suite, TABLE);
    const first = capture(source, {
      target: source,
      decoder: 'wal2json',
      tables: TABLES,
    });
    first.pipeline.start();
    await first.pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await first.pipeline.caughtUp();
    await first.pipeline.stop();
    const before = await slotAndCheckpoint(source, source);
    const { pipeline } = capture(source, {
      target: source,
      decoder: 'wal2json',
      tables: [...TABLES, ['public', 'replicant_checkpoints']],
    });
    pipeline.start();
    const halt = await haltedFor(pipeline, 'preflight/self_feeding');
    expect(halt.detail).toBe(
      'the option tables has the checkpoint table public.replicant_checkpoints; remove it there',
    );
    expect(await slotAndCheckpoint(source, source)).toEqual(before);
    expect(await slotAndCheckpoint(source, target)).toMatchObject({
      checkpoints: [],
    });
  });
});
