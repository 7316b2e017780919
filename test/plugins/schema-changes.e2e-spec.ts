import { describe, expect, it } from 'vitest';
import type { SchemaChangeKind } from '../../lib/engine/model/schema-change.js';
import type { SchemaChange } from '../../lib/engine/model/schema-change.js';
import {
  type Capture,
  capture,
  type CaptureOptions,
  inserted,
} from '../support/capture.js';
import { changesOf } from '../support/changes-of.js';
import { haltedFor } from '../support/halted.js';
import { noPluginServer, usePluginServer } from '../support/plugin-suite.js';
import { toldBy } from '../support/schema-changes.js';
import {
  sourceAndTarget,
  type SourceAndTarget,
} from '../support/source-and-target.js';
import { waitFor } from '../support/wait-for.js';

/** Longer than any test. */
const NEVER = 3_600_000;
const TABLE = 'create table t(id int primary key, n int, v text)';
const FIRST = `insert into t values (1, 1, 'a')`;

interface Change {
  readonly change: SchemaChangeKind;
  readonly ddl: string;
  /** The first statement that shows it. */
  readonly shownBy: string;
  readonly says: string | RegExp;
}

/** What a document shows by itself. */
const SHOWN: readonly Change[] = [
  {
    change: 'column_dropped',
    ddl: 'alter table t drop n',
    shownBy: `update t set v = 'b'`,
    says: 'dropped "n"',
  },
  {
    change: 'column_dropped',
    ddl: 'alter table t drop n',
    shownBy: `insert into t values (2, 'b')`,
    says: 'dropped "n"',
  },
  {
    change: 'column_dropped',
    ddl: 'alter table t drop v',
    shownBy: 'insert into t values (2, 2)',
    says: 'dropped "v"',
  },
  {
    change: 'column_dropped',
    ddl: 'alter table t drop v, add v2 text',
    shownBy: `insert into t values (2, 2, 'b')`,
    says: 'dropped "v"',
  },
  {
    change: 'column_dropped',
    ddl: 'alter table t rename n to m',
    shownBy: `update t set v = 'b'`,
    says: 'dropped "n"',
  },
  {
    change: 'type_changed',
    ddl: 'alter table t alter n type bigint',
    shownBy: `update t set v = 'b'`,
    says: 'the type of "n" was int4 and is int8',
  },
  {
    change: 'type_changed',
    ddl: 'alter table t alter v type varchar(20)',
    shownBy: `insert into t values (2, 2, 'b')`,
    says: 'the type of "v" was text and is varchar (modifier 24)',
  },
  {
    change: 'type_changed',
    ddl: 'alter table t drop v; alter table t add v int',
    shownBy: 'update t set v = 2',
    says: 'the type of "v" was text and is int4',
  },
  {
    change: 'replica_identity_changed',
    ddl: 'alter table t drop constraint t_pkey; alter table t add primary key (n)',
    shownBy: 'delete from t',
    says: 'the key was "id" and is "n"',
  },
];

/** What only the catalog shows. */
const HIDDEN: readonly Change[] = [
  {
    change: 'column_dropped',
    ddl: 'alter table t drop v',
    shownBy: 'update t set n = n + 1',
    says: 'dropped "v"',
  },
  {
    change: 'table_replaced',
    ddl: `drop table t; ${TABLE}`,
    shownBy: `insert into t values (2, 2, 'b')`,
    says: /^the table of this name had the OID \d+ and has \d+$/,
  },
];

describe.skipIf(noPluginServer)('a table that wal2json streams', () => {
  const suite = usePluginServer();

  async function streaming(
    options: Partial<CaptureOptions> = {},
    schema = TABLE,
  ): Promise<SourceAndTarget & Capture & { told: SchemaChange[] }> {
    const both = await sourceAndTarget(suite, schema);
    const captured = capture(both.source, {
      target: both.target,
      decoder: 'wal2json',
      tables: [['public', 't']],
      schemaCheckInterval: NEVER,
      ...options,
    });
    const told = toldBy(captured.pipeline);
    captured.pipeline.start();
    await captured.pipeline.whenStreaming();
    return { ...both, ...captured, told };
  }

  it.each(SHOWN)(
    'halts at the change after: $ddl; $shownBy (13.9 no. 81)',
    async ({ change, ddl, shownBy, says }) => {
      const asked: SchemaChange[] = [];
      const { source, target, pipeline, applied } = await streaming();
      await source.query(FIRST);
      await pipeline.caughtUp();
      await source.query(ddl);
      await source.query(shownBy);
      const halt = await haltedFor(pipeline, 'schema_change/destructive');
      expect(applied).toHaveLength(1);

      const second = capture(source, {
        target,
        decoder: 'wal2json',
        tables: [['public', 't']],
        schemaCheckInterval: NEVER,
        schemaChange: async (one) => void asked.push(one),
      });
      second.pipeline.start();
      await second.pipeline.caughtUp();
      expect(asked).toMatchObject([{ change, detail: says }]);
      expect(halt.lsn).toBe(second.applied[0]?.commitLsn);
      expect(second.applied).toHaveLength(1);
    },
  );

  it.each(HIDDEN)(
    'halts within schemaCheckInterval after: $ddl; $shownBy (13.9 no. 81)',
    async ({ change, ddl, shownBy, says }) => {
      const asked: SchemaChange[] = [];
      const { source, pipeline, applied } = await streaming({
        schemaCheckInterval: 250,
        schemaChange: async (one) => {
          asked.push(one);
          throw new Error('not accepted');
        },
      });
      await source.query(FIRST);
      await pipeline.caughtUp();
      await source.query(ddl);
      await waitFor(
        async () => {
          await source.query(
            shownBy.replace('(2', `(${Math.floor(performance.now() * 1000)}`),
          );
          return pipeline.halt;
        },
        { message: 'the halt' },
      );
      await haltedFor(pipeline, 'schema_change/rejected');
      expect(asked).toMatchObject([{ change }]);
      expect(asked[0]?.detail).toMatch(says);
      // What was taken for unchanged does no harm to a sink that leaves it as it was.
      for (const one of applied.slice(1).flatMap(changesOf))
        if (one.op === 'update') expect(one.unchanged).toEqual(['v']);
    },
  );

  it('has nulls in all columns, and that is no drop (13.9 no. 81)', async () => {
    const { source, pipeline, applied, told } = await streaming({
      schemaCheckInterval: 100,
    });
    await source.query('insert into t values (1), (2)');
    await source.query('update t set n = null, v = null');
    await source.query('insert into t values (3)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1, 2, 3]);
    expect(applied.flatMap(changesOf)[0]).toMatchObject({
      record: { id: 1, n: null, v: null },
    });
    expect(told).toEqual([]);
    expect(pipeline.halt).toBeNull();
  });

  it.each([
    ['an insert', `insert into t values (2, 2, 'b', 7)`],
    ['an update', 'update t set c = 7'],
  ])(
    'has a column more, which %s shows first (13.9 no. 83)',
    async (_, sql) => {
      const { source, pipeline, applied, told } = await streaming();
      await source.query(FIRST);
      await source.query('alter table t add c int');
      await source.query(sql);
      await pipeline.caughtUp();
      expect(told).toMatchObject([
        { effect: 'additive', change: 'column_added', detail: 'added "c"' },
      ]);
      expect(applied.flatMap(changesOf)[1]).toMatchObject({ record: { c: 7 } });
    },
  );

  it('has a column less and one more from the same transaction on: an update shows the one that is there first', async () => {
    const asked: SchemaChange[] = [];
    const { source, pipeline, applied, told } = await streaming({
      schemaCheckInterval: 250,
      schemaChange: async (one) => void asked.push(one),
    });
    await source.query(FIRST);
    await pipeline.caughtUp();
    await source.query('alter table t drop v, add w text');
    await waitFor(async () => {
      await source.query(`update t set w = 'b'`);
      return asked.length > 0;
    });
    await pipeline.caughtUp();
    expect(told[0]).toMatchObject({ change: 'column_added' });
    expect(asked).toMatchObject([
      { change: 'column_dropped', detail: 'dropped "v"' },
    ]);
    const last = applied.flatMap(changesOf).at(-1);
    expect(last).toMatchObject({ op: 'update', record: { id: 1, w: 'b' } });
    expect(last).not.toHaveProperty('record.v');
  });

  it.each([
    ['full', 'replica identity default became full'],
    ['using index t_n_key', 'replica identity default became index'],
  ])(
    'has another identity, which is noticed at the next connect at the latest: %s',
    async (identity, says) => {
      const schema = `${TABLE}; alter table t alter n set not null, add unique (n)`;
      const { source, pipeline } = await streaming({}, schema);
      await source.query(FIRST);
      await pipeline.caughtUp();
      await source.query(`alter table t replica identity ${identity}`);
      await source.query(`insert into t values (2, 2, 'b')`);
      await pipeline.caughtUp();
      expect(pipeline.halt).toBeNull();
      await pipeline.stop();
      pipeline.start();
      await source.query(`insert into t values (3, 3, 'c')`);
      const halt = await haltedFor(pipeline, 'schema_change/destructive');
      expect(halt.detail).toContain(says);
    },
  );
});
