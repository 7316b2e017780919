import { describe, expect, it } from 'vitest';
import { copying } from '../support/copying.js';
import { createNode } from '../support/plugin-frames.js';
import { addTable, type Part } from '../support/plugin-sources.js';
import { noPluginServer, usePluginServer } from '../support/plugin-suite.js';
import { sourceAndTarget } from '../support/source-and-target.js';
import { waitFor } from '../support/wait-for.js';

/** What two sets have of a table, and what comes of it. */
const PARTS: readonly {
  readonly what: string;
  readonly parts: readonly [Part, Part];
  readonly columns: string;
  readonly where: string;
}[] = [
  {
    what: 'the columns that either set lists',
    parts: [{ columns: ['id', 'a'] }, { columns: ['id', 'b'] }],
    columns: 'id,a,b',
    where: 'true',
  },
  {
    what: 'the columns that one set lists, although the other has all',
    parts: [{}, { columns: ['id', 'b'] }],
    columns: 'id,b',
    where: 'true',
  },
  {
    what: 'rows that meet the filters of both sets',
    parts: [{ filter: 'id % 2 = 0' }, { filter: 'a % 3 = 0' }],
    columns: 'id,a,b,c',
    where: 'id % 2 = 0 and a % 3 = 0',
  },
  {
    what: 'rows that meet the filter of one set, although the other has all',
    parts: [{ filter: 'b % 4 = 0 and id < 1400' }, {}],
    columns: 'id,a,b,c',
    where: 'b % 4 = 0 and id < 1400',
  },
  {
    what: 'rows and columns of different sets',
    parts: [{ filter: 'c is not null' }, { columns: ['id', 'a'] }],
    columns: 'id,a',
    where: 'c is not null',
  },
];

describe.skipIf(noPluginServer)(
  'of a table in two replication sets a snapshot copies what is streamed:',
  () => {
    const suite = usePluginServer();

    it.each(
      PARTS.flatMap((part) => [
        { ...part, mode: 'initial' as const },
        { ...part, mode: 'incremental' as const },
      ]),
    )('$what ($mode)', async ({ parts, columns, where, mode }) => {
      const { source, target } = await sourceAndTarget(
        suite,
        `create table t(id int primary key, a int, b int, c text, g int generated always as (a * 2) stored);
         insert into t(id, a, b, c) select i, i, i, case i % 5 when 0 then 'c' end from generate_series(1, 1500) i`,
      );
      await target.query(
        'create table t(id int primary key, a int, b int, c text)',
      );
      await createNode(source);
      for (const [index, part] of parts.entries()) {
        await source.query('select pglogical.create_replication_set($1)', [
          `set ${index}`,
        ]);
        await addTable(source, `set ${index}`, 't', part);
      }
      const { pipeline, copied, applied } = copying(source, {
        target,
        decoder: 'pglogical',
        replicationSets: parts.map((_, index) => `set ${index}`),
        snapshot: mode === 'initial' ? true : { mode, chunkRows: 200 },
      });
      pipeline.start();
      await waitFor(() => pipeline.status().snapshot?.state === 'complete');
      await pipeline.whenStreaming();
      await source.query(
        `insert into t(id, a, b, c) select i, i, i, case i % 5 when 0 then 'c' end from generate_series(-300, 0) i`,
      );
      await pipeline.caughtUp();
      expect(
        await target.query(`select ${columns} from t order by id`),
      ).toEqual(
        await source.query(
          `select ${columns} from t where ${where} order by id`,
        ),
      );
      for (const { rows } of copied)
        for (const { record } of rows)
          expect(Object.keys(record).join()).toBe(columns);
      expect(applied).toHaveLength(1);
    });
  },
);
