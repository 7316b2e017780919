import { describe, expect, it } from 'vitest';
import { CheckpointTable } from '../lib/engine/checkpoint/checkpoint-table.js';
import { HaltError } from '../lib/engine/model/halt.js';
import { formatLsn, type Lsn } from '../lib/engine/model/lsn.js';
import { countApplied } from './support/compare-tables.js';
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
import { poisonedDatabases } from './support/poisoned.js';
import { useServer } from './support/suite.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '4s' } });
/** What is not asked for is stored here every ten seconds. */
const patient = useServer();

describe('the promise of skipTransaction()', () => {
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
    const stage = await halted(suite);
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

describe('a connection that is lost while a transaction is passed over', () => {
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
