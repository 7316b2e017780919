import { describe, expect, it } from 'vitest';
import { capture } from '../support/capture.js';
import { range } from '../support/copy.js';
import {
  capturedBy,
  PLUGIN_DECODERS,
  pluginSource,
} from '../support/plugin-sources.js';
import { noPluginServer, usePluginServer } from '../support/plugin-suite.js';
import type { TestDatabase } from '../support/test-database.js';

const SESSIONS = [1, 2, 3];

/** A transaction that is far larger than the memory for decoding, with savepoints that are rolled back and released. */
async function write(
  source: TestDatabase,
  session: number,
): Promise<readonly number[]> {
  const client = await source.connect();
  const kept: number[] = [];
  await client.query('begin');
  for (const round of range(1, 10)) {
    const first = session * 100_000 + round * 1_000;
    const rows = `insert into t select id, repeat('x', 100) from generate_series(${first}, ${first + 99}) id`;
    await client.query(`savepoint s; ${rows}`);
    if (round % 3 === 0) await client.query('rollback to s');
    else kept.push(...range(first, first + 99));
    if (round % 2 === 0)
      await client.query(
        `savepoint inner_; insert into t values (${first + 500}); rollback to inner_; release s`,
      );
  }
  await client.query('commit');
  return kept;
}

describe.skipIf(noPluginServer)(
  'rolled-back savepoints of transactions that the server keeps on disk while it decodes',
  () => {
    const suite = usePluginServer();

    it.each(PLUGIN_DECODERS)(
      'do not come by %s, and each transaction comes whole (E11)',
      async (decoder) => {
        const { source, target } = await pluginSource(suite);
        await source.query(
          `alter database ${source.name} set logical_decoding_work_mem = '64kB'`,
        );
        const { pipeline } = capture(source, {
          target,
          ...capturedBy(decoder),
          apply: async ({ changes }) => {
            const ids = [];
            for await (const change of changes)
              if (change.op === 'insert') ids.push(change.record['id']);
            taken.push(ids);
          },
        });
        const taken: unknown[][] = [];
        pipeline.start();
        await pipeline.whenStreaming();
        const kept = await Promise.all(
          SESSIONS.map((session) => write(source, session)),
        );
        await pipeline.caughtUp();
        expect(taken.toSorted(byFirst)).toEqual(kept);
        const [row] = await source.query<{ spilled: string }>(
          'select pg_stat_force_next_flush(), spill_txns as spilled from pg_stat_replication_slots where slot_name = $1',
          [`slot_${source.name}`],
        );
        expect(Number(row?.spilled)).toBeGreaterThanOrEqual(3);
      },
    );
  },
);

function byFirst(
  [one]: readonly unknown[],
  [other]: readonly unknown[],
): number {
  return Number(one) - Number(other);
}
