import { describe, expect, it } from 'vitest';
import { compareTables, NO_DIFFERENCE } from '../support/compare-tables.js';
import { copying } from '../support/copying.js';
import { terminateBackend } from '../support/logical-slot.js';
import {
  capturedBy,
  PLUGIN_DECODERS,
  pluginSource,
} from '../support/plugin-sources.js';
import { noPluginServer, usePluginServer } from '../support/plugin-suite.js';
import { waitFor } from '../support/wait-for.js';

const TABLES = `create table t(id int primary key, v text, big text);
  alter table t alter column big set storage external;
  create table empty(id int primary key)`;
const NAMES = ['t', 'empty'];

describe.skipIf(noPluginServer)('an initial snapshot', () => {
  const suite = usePluginServer();

  it.each(PLUGIN_DECODERS)(
    'copies what is there, and the stream of %s begins right behind it',
    async (decoder) => {
      const { source, target } = await pluginSource(suite, TABLES, NAMES);
      await target.query(TABLES);
      await source.query(
        `insert into t select i, 'old', repeat('x', 2100) from generate_series(1, 2500) i`,
      );
      const { pipeline, copied, applied } = copying(source, {
        target,
        ...capturedBy(decoder, NAMES),
        beforeRows: async ({ context }) => {
          if (context.relation === 'public.t' && context.firstForTable)
            await source.query(
              `update t set v = 'new' where id in (1, 2500); delete from t where id = 2; update t set id = 3000 where id = 3; insert into empty values (1)`,
            );
        },
      });
      pipeline.start();
      await pipeline.whenStreaming();
      await source.query(`insert into t values (4000, 'newest')`);
      await pipeline.caughtUp();
      expect(await compareTables(source, target)).toEqual(NO_DIFFERENCE);
      expect(copied.flatMap(({ rows }) => rows)).toHaveLength(2_500);
      expect(applied).toHaveLength(2);
      await pipeline.stop();
      pipeline.start();
      await pipeline.whenStreaming();
      await source.query(`insert into t values (4001, 'after a restart')`);
      await pipeline.caughtUp();
      expect(await compareTables(source, target)).toEqual(NO_DIFFERENCE);
      expect(applied).toHaveLength(3);
      expect(copied.flatMap(({ rows }) => rows)).toHaveLength(2_500);
    },
  );

  it.each(PLUGIN_DECODERS)(
    'is made anew, with a new slot of %s, when its connection is lost',
    async (decoder) => {
      const { source, target } = await pluginSource(suite, TABLES, NAMES);
      await target.query(TABLES);
      await source.query(
        `insert into t select i, 'old' from generate_series(1, 2500) i`,
      );
      let attempts = 0;
      const { pipeline } = copying(source, {
        target,
        ...capturedBy(decoder, NAMES),
        beforeRows: async ({ context }) => {
          if (context.relation !== 'public.t') return;
          if (context.firstForTable) attempts += 1;
          else if (attempts === 1) {
            const rows = await source.query<{ pid: number }>(
              `select pid from pg_stat_activity where datname = current_database() and application_name like 'nestjs-replicant%'`,
            );
            for (const { pid } of rows) await terminateBackend(source, pid);
          }
        },
      });
      pipeline.start();
      await waitFor(() => pipeline.state === 'streaming', { timeout: 30_000 });
      await source.query('delete from t where id % 7 = 0');
      await pipeline.caughtUp();
      expect(attempts).toBe(2);
      expect(await compareTables(source, target)).toEqual(NO_DIFFERENCE);
    },
    60_000,
  );
});
