import { Logger } from '@nestjs/common';
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { CheckpointTable } from '../lib/engine/checkpoint/checkpoint-table.js';
import { HaltError } from '../lib/engine/model/halt.js';
import { formatLsn, parseLsn, type Lsn } from '../lib/engine/model/lsn.js';
import { PipelineStateError } from '../lib/engine/pipeline/state-error.js';
import { logPipeline } from '../lib/pipelines/pipeline.log.js';
import {
  compareTables,
  countApplied,
  NO_DIFFERENCE,
} from './support/compare-tables.js';
import { haltedFor, slotAndCheckpoint } from './support/halted.js';
import { lifeline } from './support/killed-client.js';
import {
  readSlot,
  terminateBackend,
  walsenderPid,
} from './support/logical-slot.js';
import {
  POISON,
  poisoned,
  poisonedDatabases,
  type Poisoned,
  type PoisonedOptions,
} from './support/poisoned.js';
import { present } from './support/present.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '4s' } });
/** What is not asked for is stored here every ten seconds. */
const patient = useServer();

/** Inserts rows with these texts, each in a transaction of its own; the ids go on from the last. */
async function insert(
  source: TestDatabase,
  ...texts: readonly string[]
): Promise<void> {
  for (const text of texts)
    await source.query(
      'insert into t select coalesce(max(id), 0) + 1, $1 from t',
      [text],
    );
}

/** A mirror that has halted at a poison transaction behind another; these come behind it. */
async function halted(
  on = suite,
  options: PoisonedOptions = {},
  behind: readonly string[] = ['behind'],
): Promise<Poisoned & { readonly lsn: Lsn }> {
  const stage = await poisoned(on, options);
  const { pipeline, source } = stage;
  pipeline.start();
  await pipeline.whenStreaming();
  await insert(source, 'before', POISON, ...behind);
  const halt = await haltedFor(pipeline, 'sink_failed');
  return { ...stage, lsn: present(halt.lsn) };
}

async function confirmed({ source, slotName }: Poisoned): Promise<Lsn> {
  const slot = await readSlot(source, slotName);
  return slot?.confirmedFlushLsn ?? 0n;
}

async function stored({ target }: Poisoned): Promise<Lsn> {
  const [row] = await target.query<{ lsn: string }>(
    'select confirmed_lsn::text as lsn from replicant_checkpoints',
  );
  return parseLsn(row?.lsn ?? '') ?? 0n;
}

/** The target has everything but the poison, each transaction once, and the handler was given the poison so often. */
async function expectPassed(
  stage: Poisoned,
  lsn: Lsn,
  { applied = 2, calls = 1, missing = 1 } = {},
): Promise<void> {
  const { source, target, pipeline } = stage;
  await pipeline.caughtUp();
  expect(await compareTables(source, target)).toEqual({
    ...NO_DIFFERENCE,
    missing,
  });
  expect(await countApplied(target)).toEqual({ applied, appliedTwice: 0 });
  expect(stage.calls.filter((call) => call === lsn)).toHaveLength(calls);
}

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

describe('the promise', () => {
  it.each(['keeper', 'library'] as const)(
    'is kept within moments, however seldom positions are stored (%s)',
    async (keeping) => {
      const stage = await halted(patient, { keeping }, []);
      const began = performance.now();
      await stage.pipeline.skipTransaction(stage.lsn);
      expect(performance.now() - began).toBeLessThan(6_000);
      await insert(stage.source, 'behind');
      await expectPassed(stage, stage.lsn);
    },
  );

  it.each(['keeper', 'library'] as const)(
    'is not kept before the checkpoint has the end, nor is it told before (%s)',
    async (keeping) => {
      // Nothing comes behind the poison that would store a position too.
      const stage = await halted(suite, { keeping }, []);
      const { pipeline, lsn, target, skipped } = stage;
      const blocker = await target.connect();
      await blocker.query(
        'begin; lock table replicant_checkpoints in exclusive mode',
      );
      let done = false;
      const skipping = pipeline.skipTransaction(lsn).then(() => {
        done = true;
      });
      await waitFor(
        async () => {
          const waiting = await target.query(
            `select from pg_locks where not granted and relation = 'replicant_checkpoints'::regclass`,
          );
          return waiting.length > 0;
        },
        { message: 'the store to wait for the lock' },
      );
      expect(await confirmed(stage)).toBeLessThanOrEqual(lsn);
      expect([done, skipped]).toEqual([false, []]);
      await blocker.query('commit');
      await skipping;
      expect(skipped).toEqual([lsn]);
      expect(await stored(stage)).toBeGreaterThan(lsn);
      expect(await confirmed(stage)).toBeGreaterThan(lsn);
    },
  );

  it.each(['keeper', 'reader', 'library'] as const)(
    'is not kept before the server has confirmed the end (%s)',
    async (keeping) => {
      const databases = await poisonedDatabases(patient);
      const { proxy, connection } = await lifeline(databases.source);
      let direct = false;
      let asked = 0;
      const stage = await halted(patient, {
        keeping,
        databases,
        connection: async () => {
          if (!direct) return connection;
          asked += 1;
          return databases.source.connection;
        },
      });
      const { pipeline, lsn, skipped } = stage;
      pipeline.on('state', ({ to }) => {
        if (to !== 'streaming') return;
        proxy.halfOpen('client-to-server');
        direct = true;
      });
      let done = false;
      const skipping = pipeline.skipTransaction(lsn).then(() => {
        done = true;
      });
      await waitFor(() => skipped.length === 1 && asked >= 3, {
        message: 'questions to the server',
      });
      expect(await confirmed(stage)).toBeLessThanOrEqual(lsn);
      expect(done).toBe(false);
      proxy.restore();
      await skipping;
      expect(await confirmed(stage)).toBeGreaterThan(lsn);
      await expectPassed(stage, lsn);
    },
  );

  it('is broken when the pipeline halts before, and the order is void', async () => {
    let right = true;
    const stage = await halted(suite, {
      sink: {
        async sessionIdentity() {
          if (!right) throw new Error('the wrong server');
        },
      },
    });
    const { pipeline, lsn, skipped } = stage;
    right = false;
    const skipping = pipeline.skipTransaction(lsn);
    await expect(skipping).rejects.toThrow(HaltError);
    await expect(skipping).rejects.toThrow('session_identity/rejected');
    await expect(pipeline.skipTransaction(lsn)).rejects.toThrow(
      'halted with session_identity/rejected',
    );
    right = true;
    pipeline.start();
    expect((await haltedFor(pipeline, 'sink_failed')).lsn).toBe(lsn);
    expect(skipped).toEqual([]);
  });

  it('is kept, with nothing to tell, when somebody has advanced the checkpoint by hand', async () => {
    const stage = await halted();
    const { pipeline, lsn, target, skipped } = stage;
    await target.query('update replicant_checkpoints set commit_lsn = $1', [
      formatLsn(lsn),
    ]);
    await pipeline.skipTransaction(lsn);
    expect(await confirmed(stage)).toBeGreaterThan(lsn);
    expect(skipped).toEqual([]);
    await expectPassed(stage, lsn);
  });

  it('is kept, with nothing to tell, when somebody has advanced the slot by hand', async () => {
    const stage = await halted(suite, { keeping: 'reader' });
    const { pipeline, lsn, source, slotName, skipped, target } = stage;
    await source.query(
      'select pg_replication_slot_advance($1, pg_current_wal_flush_lsn())',
      [slotName],
    );
    await pipeline.skipTransaction(lsn);
    expect(skipped).toEqual([]);
    await insert(source, 'later');
    await pipeline.caughtUp();
    expect(await countApplied(target)).toEqual({ applied: 2, appliedTwice: 0 });
  });
});

describe('a connection that is lost', () => {
  it('before the end is stored brings it again, and it is passed over again and told once', async () => {
    const databases = await poisonedDatabases(suite);
    let failures = 0;
    class FailingTable extends CheckpointTable {
      override async confirm(lsn: Lsn): Promise<void> {
        if (failures > 0) {
          failures -= 1;
          throw new Error('the database is away');
        }
        await super.confirm(lsn);
      }
    }
    const stage = await halted(suite, {
      databases,
      table: new FailingTable((sql, values) =>
        databases.target.query(sql, values),
      ),
    });
    const { pipeline, lsn, skipped } = stage;
    let reconnects = 0;
    pipeline.on('reconnect', () => {
      reconnects += 1;
    });
    failures = 2;
    await pipeline.skipTransaction(lsn);
    expect(reconnects).toBe(2);
    expect(skipped).toEqual([lsn]);
    await expectPassed(stage, lsn);
  });

  it('before the server has confirmed the end brings it again where nothing is stored, and it is passed over again', async () => {
    const databases = await poisonedDatabases(suite);
    const { proxy, connection } = await lifeline(databases.source);
    const stage = await halted(
      suite,
      { keeping: 'reader', databases, connection },
      [],
    );
    const { pipeline, lsn, source, slotName, skipped } = stage;
    pipeline.on('state', ({ to }) => {
      if (to === 'streaming' && skipped.length === 0)
        proxy.halfOpen('client-to-server');
    });
    const skipping = pipeline.skipTransaction(lsn);
    await waitFor(() => skipped.length === 1);
    await terminateBackend(source, await walsenderPid(source, slotName));
    expect(await confirmed(stage)).toBeLessThanOrEqual(lsn);
    proxy.restore();
    await skipping;
    expect(skipped).toEqual([lsn]);
    await insert(source, 'behind');
    await expectPassed(stage, lsn);
  });
});

describe('it is refused, and nothing is touched,', () => {
  /** What must be as it was. */
  async function standing({ source, target, pipeline }: Poisoned) {
    const places = await slotAndCheckpoint(source, target);
    return { places, state: pipeline.state, halt: pipeline.halt };
  }

  it('before the first start, while the pipeline streams, and when it was stopped', async () => {
    const stage = await poisoned(suite);
    const { pipeline, source, calls } = stage;
    await expect(pipeline.skipTransaction(1n)).rejects.toThrow(
      'Pipeline "test" has not halted (idle)',
    );
    pipeline.start();
    await pipeline.whenStreaming();
    await insert(source, 'one');
    await waitFor(() => calls.length === 1);
    const skipping = pipeline.skipTransaction(present(calls[0]));
    await expect(skipping).rejects.toThrow(PipelineStateError);
    await expect(skipping).rejects.toThrow('has not halted (streaming)');
    await pipeline.stop();
    const before = await standing(stage);
    await expect(pipeline.skipTransaction(present(calls[0]))).rejects.toThrow(
      'has not halted (stopped)',
    );
    expect(await standing(stage)).toEqual(before);
  });

  it('at every other position', async () => {
    const stage = await halted();
    const { pipeline, lsn, calls } = stage;
    const before = await standing(stage);
    for (const other of [0n, present(calls[0]), lsn - 1n, lsn + 1n])
      await expect(pipeline.skipTransaction(other)).rejects.toThrow(
        `Pipeline "test" has halted at ${formatLsn(lsn)}`,
      );
    expect(await standing(stage)).toEqual(before);
  });

  it('at a halt for another reason, though that has a position', async () => {
    const stage = await poisoned(suite);
    const { pipeline, source } = stage;
    pipeline.start();
    await pipeline.whenStreaming();
    await insert(source, 'one');
    await source.query('alter table t rename v to w');
    await insert(source, 'two');
    const halt = await haltedFor(pipeline, 'schema_change/destructive');
    const before = await standing(stage);
    await expect(pipeline.skipTransaction(present(halt.lsn))).rejects.toThrow(
      'halted with schema_change/destructive',
    );
    expect(await standing(stage)).toEqual(before);
  });

  it('where a whole batch failed, until the option sinkRetry has found the transaction', async () => {
    const batchDelivery = { maxTransactions: 3, maxDelayMs: 60_000 };
    const stage = await poisoned(suite, { batchDelivery });
    const { pipeline, source, databases } = stage;
    pipeline.start();
    await pipeline.whenStreaming();
    await insert(source, 'before', POISON, 'behind');
    const halt = await haltedFor(pipeline, 'sink_failed');
    expect(halt.lsn).toBeNull();
    const before = await standing(stage);
    await expect(
      pipeline.skipTransaction(present(stage.calls[1])),
    ).rejects.toThrow('the option sinkRetry');
    expect(await standing(stage)).toEqual(before);

    const next = await poisoned(suite, {
      databases,
      batchDelivery: { ...batchDelivery, maxDelayMs: 500 },
      sinkRetry: { maxRetries: 1, backoffMs: 10 },
    });
    next.pipeline.start();
    const { lsn } = await haltedFor(next.pipeline, 'sink_failed');
    expect(lsn).toBe(stage.calls[1]);
    next.calls.length = 0;
    await next.pipeline.skipTransaction(present(lsn));
    await expectPassed(next, present(lsn), { calls: 0 });
  });

  it('while the pipeline is being stopped, inside a handler, and for the second of two at once', async () => {
    const stage = await halted();
    const { pipeline, lsn, skipped } = stage;
    const both = [pipeline.skipTransaction(lsn), pipeline.skipTransaction(lsn)];
    await expect(both[1]).rejects.toThrow('has not halted (connecting)');
    await both[0];
    expect(skipped).toEqual([lsn]);
    const stopped = pipeline.stop();
    await expect(pipeline.skipTransaction(lsn)).rejects.toThrow(
      'is being stopped',
    );
    await stopped;

    let inside: Promise<void> | null = null;
    const other = await poisoned(suite, {
      sink: {
        async transaction({ commitLsn }) {
          inside = other.pipeline.skipTransaction(commitLsn);
          await inside;
        },
      },
    });
    other.pipeline.start();
    await other.pipeline.whenStreaming();
    await insert(other.source, 'one');
    await haltedFor(other.pipeline, 'sink_failed');
    await expect(inside).rejects.toThrow('has not halted (streaming)');
  });
});

it('whoever hears of the halt may call it at once', async () => {
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
    `warn Pipeline "test" has passed over ${formatLsn(lsn)} as skipTransaction() was told: the sink never gets it`,
  ]);
  const printed = [...said, ...lines]
    .map((one) => inspect(one, { depth: 20, showHidden: true, getters: true }))
    .join('\n');
  expect(printed).not.toContain('hunter2');
});
