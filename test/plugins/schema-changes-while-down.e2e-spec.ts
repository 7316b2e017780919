import { describe, expect, it } from 'vitest';
import type { Change } from '../../lib/engine/model/change.js';
import type { DecoderOptions } from '../../lib/engine/options/decoder-options.js';
import { capture } from '../support/capture.js';
import { changesOf } from '../support/changes-of.js';
import { haltedFor } from '../support/halted.js';
import { pglogicalSource } from '../support/pglogical-source.js';
import { noPluginServer, usePluginServer } from '../support/plugin-suite.js';
import { toldBy } from '../support/schema-changes.js';

const DECODERS: readonly DecoderOptions[] = [
  { decoder: 'pgoutput', publication: 'p' },
  { decoder: 'wal2json', tables: [['public', 't']] },
  { decoder: 'pglogical', replicationSets: 'default' },
];

interface Backlog {
  /** Statements before the change. */
  readonly before: readonly string[];
  readonly ddl: string;
  /** Statements after it. */
  readonly after: readonly string[];
  /** What is asked, or told. */
  readonly change: string;
  /** The decoders to which the rows before it do not show what the table was, so that they halt before them. */
  readonly early?: readonly DecoderOptions['decoder'][];
}

const BACKLOGS: readonly Backlog[] = [
  {
    before: [`insert into t values (2, 2, 'b')`],
    ddl: 'alter table t add c int',
    after: [`insert into t values (3, 3, 'c', 3)`, 'update t set c = 4'],
    change: 'additive: added "c"',
  },
  {
    // Whether the update left a column alone, or was before it, is not in the document.
    before: [`update t set v = 'b'`, `insert into t values (2, 2, 'b')`],
    ddl: 'alter table t add c text',
    after: [`insert into t values (3, 3, 'c', 'd')`],
    change: 'additive: added "c"',
  },
  {
    before: [`insert into t values (2, 2, 'b')`, 'update t set n = 7'],
    ddl: 'alter table t drop n',
    after: [`update t set v = 'x'`, `insert into t values (3, 'c')`],
    change: 'destructive: dropped "n"',
  },
  {
    before: [`insert into t values (2, 2, 'b')`, `update t set v = 'x'`],
    ddl: 'alter table t drop v',
    after: ['insert into t values (3, 3)', 'update t set n = 9'],
    change: 'destructive: dropped "v"',
  },
  {
    before: [`insert into t values (2, 2, 'b')`, 'update t set n = 7'],
    ddl: 'alter table t alter n type bigint',
    after: [`insert into t values (3, 3, 'c')`],
    change: 'destructive: the type of "n" was int4 and is int8',
    early: ['pglogical'],
  },
];

describe.skipIf(noPluginServer)('a change while no process runs', () => {
  const suite = usePluginServer();

  const cases = BACKLOGS.flatMap((backlog) =>
    DECODERS.map((options) => ({ ...backlog, options })),
  );

  it.each(cases)(
    'is met once, behind the rows before it, by $options.decoder: $before; $ddl',
    async ({ before, ddl, after, change, early = [], options }) => {
      const { source, target } = await pglogicalSource(
        suite,
        'create table t(id int primary key, n int, v text); create publication p for table t',
      );
      const first = capture(source, { target, ...options });
      first.pipeline.start();
      await first.pipeline.whenStreaming();
      await source.query(`insert into t values (1, 1, 'a')`);
      await first.pipeline.caughtUp();
      await first.pipeline.stop();
      for (const sql of [...before, ddl, ...after]) await source.query(sql);

      const refusing = capture(source, { target, ...options });
      const changes = toldBy(refusing.pipeline);
      refusing.pipeline.start();
      const count = early.includes(options.decoder) ? 0 : before.length;
      if (change.startsWith('destructive')) {
        await haltedFor(refusing.pipeline, 'schema_change/destructive');
        expect(refusing.applied).toHaveLength(count);
      } else await refusing.pipeline.caughtUp();
      await refusing.pipeline.stop();

      const accepting = capture(source, {
        target,
        ...options,
        schemaChange: async (one) => void changes.push(one),
      });
      accepting.pipeline.start();
      await accepting.pipeline.caughtUp();
      expect(
        changes.map(({ effect, detail }) => `${effect}: ${detail}`),
      ).toEqual([change]);
      const transactions = [...refusing.applied, ...accepting.applied];
      expect(transactions).toHaveLength(before.length + after.length);
      // Rows from before it have the columns that they had.
      const rows = transactions.slice(0, before.length).flatMap(changesOf);
      expect(rows.map(columnsOf)).toEqual(rows.map(() => ['id', 'n', 'v']));
    },
  );

  it.each(DECODERS)(
    'of the replica identity is met at the first row that has it, at the latest at the next connect, by $decoder',
    async (options) => {
      const { source, target } = await pglogicalSource(
        suite,
        'create table t(id int primary key, v text); create publication p for table t',
      );
      const first = capture(source, { target, ...options });
      first.pipeline.start();
      await first.pipeline.whenStreaming();
      await source.query(`insert into t values (1, 'a')`);
      await first.pipeline.caughtUp();
      await first.pipeline.stop();
      await source.query(`update t set v = 'b'`);
      await source.query('alter table t replica identity full');
      await source.query(`update t set v = 'c'`);
      const second = capture(source, { target, ...options });
      second.pipeline.start();
      if (options.decoder === 'wal2json') {
        // A full old row has all of a key, and the key is what was known.
        await second.pipeline.caughtUp();
        await second.pipeline.stop();
        await source.query(`update t set v = 'd'`);
        second.pipeline.start();
      }
      const halt = await haltedFor(
        second.pipeline,
        'schema_change/destructive',
      );
      expect(halt.detail).toBe(
        'public.t: replica identity default became full',
      );
      for (const change of second.applied.flatMap(changesOf))
        expect(change).toMatchObject({ op: 'update', old: null });
    },
  );
});

function columnsOf(change: Change): readonly string[] {
  return change.op === 'insert' || change.op === 'update'
    ? Object.keys(change.record).toSorted()
    : [];
}
