import { describe, expect, it } from 'vitest';
import type {
  SchemaChange,
  SchemaChangeContext,
} from '../lib/engine/model/schema-change.js';
import { inserted } from './support/capture.js';
import { streaming } from './support/delivered.js';
import { haltedFor, slotAndCheckpoint } from './support/halted.js';
import { confirmedUpTo, currentLsn } from './support/logical-slot.js';
import { DESTRUCTIONS, TABLE, toldBy } from './support/schema-changes.js';
import { useServer } from './support/suite.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer();
const FIRST = `insert into t values (1, 'a', 'b')`;

describe.each(DESTRUCTIONS)(
  'a table with a destructive change ($change: $ddl)',
  ({ change, ddl, row, says }) => {
    it('halts before the first row of the new shape, again after a start, and goes on with a method that accepts', async () => {
      const asked: [SchemaChange, SchemaChangeContext][] = [];
      let accepts = false;
      const { pipeline, run, source, target, applied } = await streaming(
        suite,
        TABLE,
        {
          schemaChange: (one, context) => {
            asked.push([one, context]);
            return accepts
              ? Promise.resolve()
              : Promise.reject(new TypeError('secret'));
          },
        },
      );
      const told = toldBy(pipeline);
      await run(FIRST);
      await source.query(ddl);
      await source.query(row);
      const halt = await haltedFor(pipeline, 'schema_change/rejected');
      expect(halt.sinkError()).toEqual(new TypeError('secret'));
      expect(JSON.stringify(halt)).not.toContain('secret');
      expect(halt.detail).toContain('rejected with TypeError');
      const before = await slotAndCheckpoint(source, target);
      pipeline.start();
      await haltedFor(pipeline, 'schema_change/rejected');
      expect(await slotAndCheckpoint(source, target)).toEqual(before);
      expect(inserted(applied, 'id')).toEqual([1]);

      accepts = true;
      pipeline.start();
      await pipeline.whenStreaming();
      await pipeline.caughtUp(await currentLsn(source));
      expect(inserted(applied, 'id')).toEqual([1, 2]);
      expect(asked).toHaveLength(3);
      expect(told).toEqual([asked[2]?.[0]]);
      for (const [one, context] of asked) {
        expect(one).toMatchObject({
          effect: 'destructive',
          change,
          relation: 'public.t',
        });
        expect(one.detail).toMatch(
          typeof says === 'string' ? new RegExp(`^${escape(says)}$`) : says,
        );
        expect(context).toEqual({
          pipeline: 'test',
          slotName: pipeline.options.slotName,
          commitLsn: applied[1]?.commitLsn,
        });
        expect(context.commitLsn).toBe(halt.lsn);
      }
      // What was accepted is not asked again, by this process or the next.
      await source.query(row.replace('(2', '(3'));
      await pipeline.caughtUp(await currentLsn(source));
      await pipeline.stop();
      await source.query(row.replace('(2', '(4'));
      pipeline.start();
      await pipeline.whenStreaming();
      await pipeline.caughtUp(await currentLsn(source));
      expect(inserted(applied, 'id')).toEqual([1, 2, 3, 4]);
      expect(asked).toHaveLength(3);
    });

    it('halts without a method, with everything before it durable and confirmed', async () => {
      const { pipeline, run, source, applied } = await streaming(suite, TABLE);
      await run(FIRST);
      await source.query(ddl);
      await source.query(row);
      const halt = await haltedFor(pipeline, 'schema_change/destructive');
      expect(halt.detail.startsWith('public.t: ')).toBe(true);
      expect(halt.lsn).toBeGreaterThan(applied[0]?.commitLsn ?? 0n);
      expect(inserted(applied, 'id')).toEqual([1]);
      await confirmedUpTo(
        source,
        pipeline.options.slotName,
        applied[0]?.commitEndLsn ?? 0n,
      );
    });
  },
);

describe('a change that nobody has to be asked about', () => {
  it('passes: a column that is added, with and without a default, under any identity (N02)', async () => {
    const { pipeline, run, source, applied } = await streaming(
      suite,
      `${TABLE}; create table f(id int); alter table f replica identity full`,
    );
    const told = toldBy(pipeline);
    await run(`${FIRST}; insert into f values (1)`);
    await run('alter table t add column c int not null default 7');
    await run('alter table f add column c text, add column d text');
    await run(
      `insert into t values (2, 'a', 'b', 8); insert into f values (2)`,
    );
    await run('update t set a = a');
    expect(inserted(applied, 'id')).toEqual([1, 1, 2, 2]);
    expect(told).toMatchObject([
      {
        effect: 'additive',
        change: 'column_added',
        relation: 'public.t',
        detail: 'added "c"',
      },
      { relation: 'public.f', detail: 'added "c", "d"' },
    ]);
    expect(pipeline.halt).toBeNull();
    await pipeline.stop();
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query(`insert into t values (3, 'a', 'b', 8)`);
    await waitFor(() => inserted(applied, 'id').at(-1) === 3);
    expect(told).toHaveLength(2);
  });

  it('is none: a rewrite, an index, a default, a comment, a type with another name', async () => {
    const { pipeline, run, applied } = await streaming(
      suite,
      `create type mood as enum ('sad'); ${TABLE}; alter table t add column m mood`,
    );
    const told = toldBy(pipeline);
    await run(`insert into t values (1, 'a', 'b', 'sad')`);
    await run('create index on t(a)');
    await run(`alter table t alter b set default 'z', alter a set not null`);
    await run(`comment on table t is 'x'`);
    await run('vacuum full t');
    await run('cluster t using t_pkey');
    await run(`alter type mood add value 'glad'`);
    await run('alter type mood rename to humour');
    await run(`insert into t values (2, 'a', 'b', 'glad')`);
    expect(inserted(applied, 'm')).toEqual(['sad', 'glad']);
    expect(told).toEqual([]);
    expect(pipeline.halt).toBeNull();
  });
});

function escape(text: string): string {
  return text.replace(/[()]/g, '\\$&');
}
