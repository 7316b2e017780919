import { describe, expect, it } from 'vitest';
import { capture, inserted } from './support/capture.js';
import { copy as copying, copyResult } from './support/copy.js';
import { haltedFor, slotAndCheckpoint } from './support/halted.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { PrimaryAndStandby } from './support/standby.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer();
const FIRST_WITH_FAILOVER = 17;

/** Whether the server of this run knows the option; each test says what happens where it does not. */
function isKnown(): boolean {
  return suite.server.majorVersion >= FIRST_WITH_FAILOVER;
}

async function failoverOf(source: TestDatabase): Promise<unknown> {
  const [slot] = await source.query<{ slot: { failover?: boolean } }>(
    'select to_jsonb(s) as slot from pg_replication_slots s where slot_name = $1',
    [`slot_${source.name}`],
  );
  return slot?.slot.failover;
}

/** Halts with the refusal, and leaves everything as it is. */
async function isRefused(): Promise<void> {
  const { source, target } = await sourceAndTarget(suite);
  const { pipeline } = capture(source, { target, failover: true });
  for (let round = 0; round < 2; round++) {
    pipeline.start();
    await haltedFor(pipeline, 'config/failover_unsupported');
    expect(await slotAndCheckpoint(source, target)).toEqual({
      slots: [],
      checkpoints: [],
    });
  }
}

describe('the option failover', () => {
  it('creates a slot that is synchronized to standbys', async () => {
    if (!isKnown()) return isRefused();
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline, applied } = capture(source, { target, failover: true });
    pipeline.start();
    await pipeline.whenStreaming();
    expect(await failoverOf(source)).toBe(true);
    await source.query('insert into t values (1)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1]);
  });

  it('sets the property of a slot that was created without it, once, and says so', async () => {
    if (!isKnown()) return isRefused();
    const { source, target } = await sourceAndTarget(suite);
    const before = capture(source, { target });
    before.pipeline.start();
    await before.pipeline.whenStreaming();
    expect(await failoverOf(source)).toBe(false);

    const { pipeline, applied } = capture(source, { target, failover: true });
    const warnings: string[] = [];
    pipeline.on('warning', ({ message }) => warnings.push(message));
    // The other one has the slot: until it leaves, nothing can be set.
    pipeline.start();
    await waitFor(() => pipeline.status().attempt > 0);
    expect(await failoverOf(source)).toBe(false);
    await before.pipeline.stop();
    await pipeline.whenStreaming();
    expect(await failoverOf(source)).toBe(true);
    await source.query('insert into t values (1)');
    await pipeline.caughtUp();
    await pipeline.stop();
    pipeline.start();
    await pipeline.whenStreaming();
    expect(inserted(applied, 'id')).toEqual([1]);
    expect(warnings).toEqual([expect.stringMatching(/failover/)]);
  });
});

describe('a promotion', () => {
  it('under load loses nothing and applies nothing twice', async () => {
    if (!isKnown()) return isRefused();
    const servers = await PrimaryAndStandby.start({
      schema:
        'create table t(id int primary key); create publication p for table t',
    });
    const target = await suite.database('target');
    let current = servers.source;
    const pipeline = await copying(servers.source, {
      target,
      failover: true,
      connection: () => ({ ...current.connection }),
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await servers.slotSynchronized(`slot_${servers.source.name}`);
    const writer = await Writer.start(servers.source, 1);
    await waitFor(
      async () => {
        const { ids } = await copyResult(target);
        return ids.length > 100;
      },
      { timeout: 20_000 },
    );
    await servers.primary.kill();
    await writer.ended;
    expect(
      await servers.standby.query(
        'select synced, temporary, invalidation_reason from pg_replication_slots',
      ),
    ).toEqual([{ synced: true, temporary: false, invalidation_reason: null }]);
    await servers.promote();
    current = servers.copy;
    await servers.copy.query(
      'insert into t select generate_series(1000001, 1000100)',
    );
    // What had not reached the standby is lost to the source itself; nobody may have seen it.
    const rows = await servers.copy.query<{ id: number }>(
      'select id from t order by id',
    );
    expect(rows.length).toBeGreaterThan(150);
    const ids = rows.map(({ id }) => id);
    await waitFor(
      async () => {
        expect(pipeline.halt).toBeNull();
        return (await copyResult(target)).ids.length >= ids.length;
      },
      // The pipeline may have reached its longest delay while the primary was dead.
      { timeout: 60_000, message: `the copy; it is ${pipeline.state}` },
    );
    const result = await copyResult(target);
    expect(result.ids).toEqual(ids);
    expect(result.appliedTwice).toBe(0);
  }, 150_000);

  it('is waited for with leaderElection, and its lack halts otherwise', async () => {
    if (!isKnown()) return isRefused();
    const servers = await PrimaryAndStandby.start();
    const target = await suite.database('target');
    let current = servers.source;
    const options = {
      target,
      failover: true,
      connection: () => ({ ...current.connection }),
    };
    const { pipeline, applied } = capture(servers.source, options);
    pipeline.start();
    await pipeline.whenStreaming();
    await servers.source.query('insert into t values (1)');
    await servers.slotSynchronized(`slot_${servers.source.name}`);
    await pipeline.caughtUp();
    await pipeline.stop();

    current = servers.copy;
    const before = await checkpoints(target);
    for (let round = 0; round < 2; round++) {
      pipeline.start();
      await haltedFor(pipeline, 'slot_synced_unpromoted');
      expect(await checkpoints(target)).toEqual(before);
    }
    const waiting = capture(servers.source, {
      ...options,
      leaderElection: true,
    });
    waiting.pipeline.start();
    await waitFor(() => waiting.pipeline.status().attempt >= 2);
    expect(waiting.pipeline.halt).toBeNull();
    expect(waiting.pipeline.reason).toContain('not promoted');

    await servers.primary.kill();
    await servers.promote();
    await servers.copy.query('insert into t values (2)');
    await waitFor(() => waiting.applied.length === 1, { timeout: 20_000 });
    expect(inserted(applied, 'id')).toEqual([1]);
    expect(inserted(waiting.applied, 'id')).toEqual([2]);
  }, 90_000);
});

function checkpoints(target: TestDatabase): Promise<unknown> {
  return target.query('select * from replicant_checkpoints');
}

/** Inserts one row after the other until its connection is lost. */
class Writer {
  count = 0;
  readonly ended: Promise<void>;

  private constructor(insert: (id: number) => Promise<unknown>, first: number) {
    this.ended = this.#run(insert, first);
  }

  static async start(source: TestDatabase, first: number): Promise<Writer> {
    const client = await source.connect();
    return new Writer(
      (id) => client.query('insert into t values ($1)', [id]),
      first,
    );
  }

  async #run(
    insert: (id: number) => Promise<unknown>,
    first: number,
  ): Promise<void> {
    try {
      for (let id = first; ; id++) {
        await insert(id);
        this.count += 1;
      }
    } catch {
      // The server is gone.
    }
  }
}
