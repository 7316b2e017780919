import { Logger } from '@nestjs/common';
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { formatLsn, parseLsn, type Lsn } from '../lib/engine/model/lsn.js';
import { PipelineStateError } from '../lib/engine/pipeline/state-error.js';
import { logPipeline } from '../lib/pipelines/pipeline.log.js';
import {
  compareTables,
  countApplied,
  NO_DIFFERENCE,
} from './support/compare-tables.js';
import { haltedFor } from './support/halted.js';
import { lifeline } from './support/killed-client.js';
import { terminateBackend, walsenderPid } from './support/logical-slot.js';
import {
  confirmed,
  expectPassed,
  halted,
  insert,
  stored,
} from './support/passing-over.js';
import { POISON, poisoned, poisonedDatabases } from './support/poisoned.js';
import { present } from './support/present.js';
import { useServer } from './support/suite.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '4s' } });

describe.each(['keeper', 'reader', 'library'] as const)(
  'a transaction that cannot be applied, with the checkpoint of a %s',
  (keeping) => {
    it('is passed over, those before and behind it are applied once', async () => {
      const stage = await halted(suite, { keeping });
      const { pipeline, lsn, skipped } = stage;
      await pipeline.skipTransaction(lsn);
      expect(skipped).toEqual([lsn]);
      // The next in line may be durable as well by now.
      expect(await confirmed(stage)).toBeGreaterThan(lsn);
      if (keeping !== 'reader')
        expect(await stored(stage)).toBeGreaterThan(lsn);
      await expectPassed(stage, lsn);
    });

    it('is passed over though it is too large to be held', async () => {
      const stage = await poisoned(suite, {
        keeping,
        maxInflightBytes: 64 * 1024,
      });
      const { pipeline, source } = stage;
      pipeline.start();
      await pipeline.whenStreaming();
      await insert(source, 'before');
      await source.query(
        `insert into t select g, case g when 50 then $1 else repeat('x', 1000) end from generate_series(2, 3000) g`,
        [POISON],
      );
      await insert(source, 'behind');
      const lsn = present((await haltedFor(pipeline, 'sink_failed')).lsn);
      let most = 0;
      pipeline.on('skipped', () => clearInterval(sampling));
      const sampling = setInterval(() => {
        most = Math.max(most, pipeline.status().inflightBytes);
      }, 1);
      await pipeline.skipTransaction(lsn);
      clearInterval(sampling);
      expect(most).toBeLessThan(2_000);
      await expectPassed(stage, lsn, { missing: 2_999 });
    });

    it('does not come again in the next process', async () => {
      const stage = await halted(suite, { keeping });
      const { pipeline, lsn, databases } = stage;
      await pipeline.skipTransaction(lsn);
      await pipeline.stop();
      const next = await poisoned(suite, { keeping, databases });
      next.pipeline.start();
      await expectPassed(next, lsn, { calls: 0 });
    });

    it('comes again when the pipeline is stopped before: the order was for one start', async () => {
      const stage = await halted(suite, { keeping });
      const { pipeline, lsn, skipped } = stage;
      const skipping = pipeline.skipTransaction(lsn);
      await Promise.all([
        expect(skipping).rejects.toThrow(PipelineStateError),
        pipeline.stop(),
      ]);
      pipeline.start();
      expect((await haltedFor(pipeline, 'sink_failed')).lsn).toBe(lsn);
      expect(skipped).toEqual([]);
      await pipeline.skipTransaction(lsn);
      await expectPassed(stage, lsn, { calls: 2 });
    });

    it('is followed by the next one, at which the pipeline halts and is told to pass it over too', async () => {
      const stage = await poisoned(suite, { keeping });
      const { pipeline, source, skipped } = stage;
      pipeline.start();
      await pipeline.whenStreaming();
      await insert(source, 'before', POISON, POISON, 'behind');
      const first = present((await haltedFor(pipeline, 'sink_failed')).lsn);
      await pipeline.skipTransaction(first);
      const second = present((await haltedFor(pipeline, 'sink_failed')).lsn);
      expect(second).toBeGreaterThan(first);
      await expect(pipeline.skipTransaction(first)).rejects.toThrow(
        `halted at ${formatLsn(second)}`,
      );
      await pipeline.skipTransaction(second);
      expect(skipped).toEqual([first, second]);
      await expectPassed(stage, first, { missing: 2 });
      await expectPassed(stage, second, { missing: 2 });
    });
  },
);

it('what comes before it and is not durable is delivered first, such as after the target was restored', async () => {
  const databases = await poisonedDatabases(suite);
  const { proxy, connection } = await lifeline(databases.source);
  const stage = await poisoned(suite, { databases, connection });
  const { pipeline, source, target, slotName, calls } = stage;
  pipeline.start();
  await pipeline.whenStreaming();
  await insert(source, 'first');
  await pipeline.caughtUp();
  const backup = await target.query('select * from replicant_checkpoints');
  proxy.halfOpen('client-to-server');
  await insert(source, 'before', POISON);
  const lsn = present((await haltedFor(pipeline, 'sink_failed')).lsn);
  await terminateBackend(source, await walsenderPid(source, slotName));
  proxy.restore();
  await target.query(
    `delete from t where v = 'before';
     delete from ledger where commit_lsn > (select min(commit_lsn) from ledger);`,
  );
  await target.query(
    'update replicant_checkpoints set commit_lsn = $1, confirmed_lsn = $2',
    [backup[0]?.['commit_lsn'], backup[0]?.['confirmed_lsn']],
  );
  await pipeline.skipTransaction(lsn);
  await expectPassed(stage, lsn);
  expect(calls).toEqual([calls[0], calls[1], lsn, calls[1]]);
});

it('whoever hears of the halt may have it passed over at once', async () => {
  const stage = await poisoned(suite);
  const { pipeline, source } = stage;
  const skipping: Promise<void>[] = [];
  pipeline.on('halt', ({ halt }) => {
    if (halt.lsn !== null) skipping.push(pipeline.skipTransaction(halt.lsn));
  });
  pipeline.start();
  await pipeline.whenStreaming();
  await insert(source, 'before', POISON, 'between', POISON, 'behind');
  await waitFor(() => skipping.length === 2);
  await Promise.all(skipping);
  expect(stage.skipped).toHaveLength(2);
  await expectPassed(stage, present(stage.skipped[0]), {
    applied: 3,
    missing: 2,
  });
});

it('a log that is never confirmed past its checkpoint is confirmed past what it was told to pass over', async () => {
  const origins: Lsn[] = [];
  const stage = await halted(
    suite,
    {
      goForwardOnly: false,
      sink: {
        kind: 'appendLog',
        async slotOrigin(origin) {
          origins.push(origin);
        },
      },
    },
    [],
  );
  const { pipeline, lsn, source } = stage;
  await pipeline.skipTransaction(lsn);
  expect(await stored(stage)).toBe(await confirmed(stage));
  expect(await stored(stage)).toBeGreaterThan(lsn);
  await pipeline.stop();
  const end = await confirmed(stage);
  pipeline.start();
  await insert(source, 'behind');
  await expectPassed(stage, lsn);
  expect(origins.at(-1)).toBe(end);
});

it('a schema change that it carries is asked about with the next row of the table', async () => {
  const asked: [string, Lsn][] = [];
  const stage = await poisoned(suite, {
    sink: {
      async schemaChange({ change }, { commitLsn }) {
        asked.push([change, commitLsn]);
      },
    },
  });
  const { pipeline, source, target } = stage;
  await source.query('alter table t add x int');
  pipeline.start();
  await pipeline.whenStreaming();
  await insert(source, 'before');
  // By itself: the server announces the table with the poison, and not again with the next row.
  await source.query('alter table t drop x');
  await insert(source, POISON);
  const lsn = present((await haltedFor(pipeline, 'sink_failed')).lsn);
  expect(asked).toEqual([['column_dropped', lsn]]);
  await pipeline.skipTransaction(lsn);
  expect(asked).toHaveLength(1);
  await insert(source, 'behind');
  await expectPassed(stage, lsn);
  const [row] = await target.query<{ lsn: string }>(
    'select commit_lsn::text as lsn from replicant_checkpoints',
  );
  expect(asked[1]).toEqual(['column_dropped', parseLsn(row?.lsn ?? '')]);
});

it.each(['keeper', 'reader', 'library'] as const)(
  'a message outside transactions is passed over in its place, and not the transaction whose commit begins where it ends (%s)',
  async (keeping) => {
    const taken: Lsn[] = [];
    const stage = await poisoned(suite, {
      keeping,
      messages: true,
      sink: {
        message: {
          takes: () => true,
          async handle({ lsn, content }) {
            taken.push(lsn);
            if (content.toString() === POISON) throw new Error(POISON);
          },
        },
      },
    });
    const { pipeline, source, target, skipped } = stage;
    pipeline.start();
    await pipeline.whenStreaming();
    await insert(source, 'before');
    await source.query(
      `begin;
       insert into t values (2, 'around');
       select pg_logical_emit_message(false, 'p', '${POISON}');
       commit;
       select pg_logical_emit_message(false, 'p', 'fine')`,
    );
    const halt = await haltedFor(pipeline, 'sink_failed');
    expect(halt.delivery).toBe('message');
    const lsn = present(halt.lsn);
    await pipeline.skipTransaction(lsn);
    expect(skipped).toEqual([lsn]);
    expect(await confirmed(stage)).toBeGreaterThanOrEqual(lsn);
    await pipeline.caughtUp();
    expect(taken.filter((one) => one === lsn)).toHaveLength(1);
    expect(taken).toHaveLength(2);
    expect(await compareTables(source, target)).toEqual(NO_DIFFERENCE);
    expect(await countApplied(target)).toEqual({ applied: 2, appliedTwice: 0 });
  },
);

it('the log has one line for it, and nothing that is told holds a value', async () => {
  const stage = await poisoned(suite);
  const { pipeline, source } = stage;
  const lines: string[] = [];
  class Lines extends Logger {
    override log(message: unknown): void {
      lines.push(`log ${String(message)}`);
    }
    override warn(message: unknown): void {
      lines.push(`warn ${String(message)}`);
    }
    override error(message: unknown): void {
      lines.push(`error ${String(message)}`);
    }
  }
  logPipeline(pipeline, new Lines());
  const said: unknown[] = [];
  for (const event of ['state', 'halt', 'skipped', 'delivered'] as const)
    pipeline.on(event, (told) => said.push(told, pipeline.status()));
  pipeline.start();
  await pipeline.whenStreaming();
  await insert(source, 'before', POISON, 'behind');
  const lsn = present((await haltedFor(pipeline, 'sink_failed')).lsn);
  said.push(
    await pipeline.skipTransaction(0n).catch((error: unknown) => error),
  );
  await pipeline.skipTransaction(lsn);
  await pipeline.caughtUp();
  expect(lines.filter((line) => line.includes('has passed over'))).toEqual([
    `warn Pipeline "test" has passed over the transaction at ${formatLsn(lsn)} as skipTransaction() was told: the sink never gets it`,
  ]);
  const printed = [...said, ...lines]
    .map((one) => inspect(one, { depth: 20, showHidden: true, getters: true }))
    .join('\n');
  expect(printed).not.toContain('hunter2');
});
