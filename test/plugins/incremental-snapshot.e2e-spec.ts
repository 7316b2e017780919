import { describe, expect, it } from 'vitest';
import type { Pipeline } from '../../lib/engine/pipeline.js';
import { compareTables, NO_DIFFERENCE } from '../support/compare-tables.js';
import { copying } from '../support/copying.js';
import { terminateBackend, walsenderPid } from '../support/logical-slot.js';
import {
  capturedBy,
  PLUGIN_DECODERS,
  pluginSource,
} from '../support/plugin-sources.js';
import { noPluginServer, usePluginServer } from '../support/plugin-suite.js';
import type { TestDatabase } from '../support/test-database.js';
import { waitFor } from '../support/wait-for.js';

const TABLES = `create table t(id int primary key, v text, big text);
  alter table t alter column big set storage external;
  create table pair(a text, b int, v text, primary key (b, a));
  create table emptied(id int primary key)`;
const NAMES = ['t', 'pair', 'emptied'];

/** Fills the tables. */
const ROWS = `insert into t select i, 'old', repeat('x', 2100) from generate_series(1, 2000) i;
  insert into pair select 'a' || i % 7, i, 'old' from generate_series(1, 1000) i;
  insert into emptied select generate_series(1, 1000)`;

/** Writes until the copy is complete. Every statement is a transaction. */
async function writeBeside(
  source: TestDatabase,
  pipeline: Pipeline,
): Promise<number> {
  const client = await source.connect();
  let n = 0;
  while (pipeline.status().snapshot?.state !== 'complete') {
    n += 1;
    const some = (n * 37) % 2_000;
    for (const statement of [
      `update t set v = 'v${n}' where id between ${some} and ${some} + 5`,
      `update t set big = repeat('y', 2100 + ${n}) where id = ${some + 7}`,
      `delete from t where id = ${some + 9}`,
      `insert into t values (${some + 9}, 'again', null) on conflict do nothing`,
      `update t set id = ${10_000 + n} where id = ${some + 11}`,
      `update pair set a = a || '${n}' where b = ${some % 1_000}`,
      `delete from pair where b = ${(some + 500) % 1_000}`,
      n === 20
        ? 'truncate emptied'
        : `insert into emptied values (${n + 1_000})`,
    ])
      await client.query(statement);
    expect(pipeline.halt).toBeNull();
    // Chunks wait for what was written before them, so the sink has to keep up.
    await waitFor(() => pipeline.status().inflightBytes < 32 * 1024);
  }
  return n;
}

describe.skipIf(noPluginServer)('an incremental snapshot', () => {
  const suite = usePluginServer();

  it.each(PLUGIN_DECODERS)(
    'is right beside a stream of %s and somebody who writes all the time',
    async (decoder) => {
      const { source, target } = await pluginSource(suite, TABLES, NAMES);
      await target.query(TABLES);
      await source.query(ROWS);
      const { pipeline, copied } = copying(source, {
        target,
        ...capturedBy(decoder, NAMES),
        snapshot: { mode: 'incremental', chunkRows: 20 },
      });
      pipeline.start();
      await pipeline.whenStreaming();
      const rounds = await writeBeside(source, pipeline);
      await pipeline.caughtUp();
      expect(await compareTables(source, target)).toEqual(NO_DIFFERENCE);
      expect(copied.length).toBeGreaterThan(100);
      expect(rounds).toBeGreaterThan(20);
    },
    60_000,
  );

  it.each(PLUGIN_DECODERS)(
    'goes on where it was when the connection of %s is lost',
    async (decoder) => {
      const { source, target } = await pluginSource(suite, TABLES, NAMES);
      await target.query(TABLES);
      await source.query(ROWS);
      let chunks = 0;
      const { pipeline, copied } = copying(source, {
        target,
        ...capturedBy(decoder, NAMES),
        snapshot: { mode: 'incremental', chunkRows: 20 },
        beforeRows: async ({ rows }) => {
          if (rows.length === 0) return;
          chunks += 1;
          if (chunks === 20)
            await terminateBackend(
              source,
              await walsenderPid(source, `slot_${source.name}`),
            );
        },
      });
      const reconnects: unknown[] = [];
      pipeline.on('reconnect', (event) => reconnects.push(event));
      pipeline.start();
      await waitFor(() => reconnects.length > 0);
      await source.query(
        `update t set v = 'late' where id % 100 = 8; delete from t where id % 100 = 9`,
      );
      await waitFor(() => pipeline.status().snapshot?.state === 'complete', {
        timeout: 30_000,
      });
      await pipeline.caughtUp();
      expect(await compareTables(source, target)).toEqual(NO_DIFFERENCE);
      const first = copied.filter(({ context }) => context.firstForTable);
      expect(first.map(({ context }) => context.relation)).toHaveLength(3);
    },
    60_000,
  );
});
