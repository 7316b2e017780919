import { describe, expect, it, onTestFinished } from 'vitest';
import { type Lsn, parseLsn } from '../lib/engine/model/lsn.js';
import { BULK_TABLE } from './support/bulk-mirror.js';
import { bulkMirroring, insertRows, sumsOf } from './support/bulk-mirroring.js';
import { countApplied } from './support/compare-tables.js';
import { currentLsn, readSlot } from './support/logical-slot.js';
import { Mirrored } from './support/mirrored.js';
import { present } from './support/present.js';
import { recordStatusUpdates } from './support/status-tap.js';
import { useServer } from './support/suite.js';
import { TcpProxy } from './support/tcp-proxy.js';
import type { TestApplication } from './support/test-application.js';
import type { TestDatabase } from './support/test-database.js';
import { deferred, waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '3s' } });
/** Where a target is that must outlive the source. */
const other = useServer();

const BULK = { BULK: 'on' };
const ONCE = { applied: 1, appliedTwice: 0 };

/** What an application has seen of its transactions: the numbers of rows that it said. */
function rowsSeen({ said }: TestApplication): number[] {
  return said.map(Number).filter((rows) => !Number.isNaN(rows));
}

/** The commit of every transaction of the mirror takes so long. */
async function slowCommits(target: TestDatabase, ms: number): Promise<void> {
  await target.query(
    `create function linger() returns trigger language plpgsql as
       $$ begin perform pg_sleep(${ms} / 1000.0); return null; end $$;
     create constraint trigger lingering after insert on ledger
       deferrable initially deferred for each row execute function linger()`,
  );
}

/** Waits until a session of the database is in its COMMIT. */
async function committing(target: TestDatabase): Promise<void> {
  await waitFor(
    async () => {
      const sessions = await target.query(
        "select from pg_stat_activity where datname = current_database() and state = 'active' and query = 'commit'",
      );
      return sessions.length > 0;
    },
    { message: 'a commit', timeout: 30_000 },
  );
}

/** Commit position of the last transaction that the target has. */
async function appliedUpTo(target: TestDatabase): Promise<Lsn> {
  const [stored] = await target.query<{ lsn: string }>(
    'select commit_lsn::text as lsn from replicant_checkpoints',
  );
  return present(parseLsn(stored?.lsn ?? ''));
}

/** Whether the server was told of the last transaction that the target has. */
async function isConfirmed(mirrored: Mirrored): Promise<boolean> {
  const slot = await readSlot(mirrored.source, mirrored.slotName);
  return (
    present(slot?.confirmedFlushLsn) > (await appliedUpTo(mirrored.target))
  );
}

describe('an application that is killed', { timeout: 120_000 }, () => {
  it('when its sink has seen half of a transaction is given all of it again, and applies it once (A19)', async () => {
    const mirrored = await Mirrored.create(suite, BULK_TABLE);
    const first = await mirrored.started(BULK);
    await insertRows(mirrored.source, 1, 200_000, 200);
    await first.says('100000');
    await first.kill();
    expect(await countApplied(mirrored.target)).toMatchObject({ applied: 0 });

    const second = await mirrored.started(BULK);
    await mirrored.caughtUp(60_000);
    expect(rowsSeen(second)[0]).toBe(1_000);
    expect(rowsSeen(second).at(-1)).toBe(200_000);
    expect(await sumsOf(mirrored.target)).toEqual(
      await sumsOf(mirrored.source),
    );
    expect(await countApplied(mirrored.target)).toEqual(ONCE);
  });

  it('at random points of a transaction, the last in its commit, applies it once (A19)', async () => {
    const mirrored = await Mirrored.create(suite, BULK_TABLE);
    await slowCommits(mirrored.target, 1_500);
    let application = await mirrored.started(BULK);
    await insertRows(mirrored.source, 1, 100_000, 200);
    for (let kill = 0; kill < 5; kill += 1) {
      const thousands = 1 + Math.floor(Math.random() * 100);
      await application.says(String(thousands * 1_000));
      await application.kill();
      application = mirrored.start(BULK);
    }
    await committing(mirrored.target);
    await application.kill();
    // The server does not know, and commits while the next one begins.
    await mirrored.started(BULK);
    await insertRows(mirrored.source, 200_001, 1);
    await mirrored.caughtUp(60_000);
    expect(await sumsOf(mirrored.target)).toEqual(
      await sumsOf(mirrored.source),
    );
    expect(await countApplied(mirrored.target)).toEqual({
      applied: 2,
      appliedTwice: 0,
    });
  });

  it('after its sink has committed passes over the transaction without holding it (A07)', async () => {
    const mirrored = await Mirrored.create(suite, BULK_TABLE);
    const application = await mirrored.started({ ...BULK, HOLD: 'committed' });
    await insertRows(mirrored.source, 1, 200_000, 200);
    await application.says('committed');
    await application.kill();
    expect(await isConfirmed(mirrored)).toBe(false);

    const { pipeline, calls } = await bulkMirroring(mirrored);
    let most = 0;
    const sampling = setInterval(() => {
      most = Math.max(most, pipeline.status().inflightBytes);
    }, 1);
    onTestFinished(() => clearInterval(sampling));
    await insertRows(mirrored.source, 200_001, 1);
    await pipeline.caughtUp();
    expect(most).toBeLessThan(2_000);
    expect(calls()).toBe(1);
    expect(await sumsOf(mirrored.target)).toEqual(
      await sumsOf(mirrored.source),
    );
  });
});

describe('the positions that the server is told', () => {
  it('are behind the commit of a transaction as long as its end has not arrived', async () => {
    const [reached, released] = [deferred(), deferred()];
    const mirrored = await Mirrored.create(suite, BULK_TABLE);
    const { source, target } = mirrored;
    const proxy = await TcpProxy.start(source.connection);
    onTestFinished(() => proxy.close());
    const updates = recordStatusUpdates(proxy);
    const { host, port } = proxy;
    const { pipeline } = await bulkMirroring(mirrored, {
      connection: { ...source.connection, host, port },
      async seen(rows) {
        if (rows !== 10_000) return;
        reached.resolve();
        await released.promise;
      },
    });
    await insertRows(source, 1, 50_000, 640);
    await reached.promise;
    const before = updates.length;
    await waitFor(() => updates.length > before + 1);
    const told = [...updates];
    released.resolve();
    await pipeline.caughtUp();
    const commitLsn = await appliedUpTo(target);
    expect(
      told.filter(
        ({ written, flushed, applied }) =>
          written >= commitLsn || flushed >= commitLsn || applied >= commitLsn,
      ),
    ).toEqual([]);
  });
});

describe('a connection that is reset', { timeout: 120_000 }, () => {
  it('at twenty random bytes of one transaction loses nothing, applies it once and does not halt', async () => {
    const ROWS = 40_000;
    const mirrored = await Mirrored.create(suite, BULK_TABLE);
    const { source, target } = mirrored;
    const proxy = await TcpProxy.start(source.connection);
    onTestFinished(() => proxy.close());
    const { host, port } = proxy;
    const { pipeline, calls } = await bulkMirroring(mirrored, {
      connection: { ...source.connection, host, port },
      maxInflightBytes: 256 * 1024,
    });
    let resets = 0;
    let position = Infinity;
    const passed = new Map<number, number>();
    proxy.tap = (bytes, direction, connection) => {
      if (direction === 'client-to-server') return;
      const before = passed.get(connection) ?? 0;
      passed.set(connection, before + bytes.length);
      if (before >= position || before + bytes.length < position) return;
      resets += 1;
      position = resets < 20 ? randomPosition() : Infinity;
      setImmediate(() => proxy.reset());
    };
    // No connection but that of the stream carries so much.
    const randomPosition = (): number =>
      20_000 + Math.floor(Math.random() * ROWS * 80);
    position = randomPosition();
    await insertRows(source, 1, ROWS, 100);
    await pipeline.caughtUp(await currentLsn(source));
    expect(resets).toBe(20);
    expect(calls()).toBeGreaterThan(5);
    expect(pipeline.halt).toBeNull();
    expect(await sumsOf(target)).toEqual(await sumsOf(source));
    expect(await countApplied(target)).toEqual(ONCE);
  });
});

describe('a server that crashes', { timeout: 120_000 }, () => {
  it('while half of a transaction is read sends all of it again, and the part is rolled back (G11)', async () => {
    const half = deferred();
    const mirrored = await Mirrored.create(suite, BULK_TABLE, other);
    const { source, target } = mirrored;
    const { pipeline, calls } = await bulkMirroring(mirrored, {
      seen: (rows) => {
        if (rows === 150_000) half.resolve();
      },
    });
    await insertRows(source, 1, 300_000, 300);
    await half.promise;
    await suite.server.stop('immediate');
    await waitFor(() => pipeline.state === 'reconnecting');
    await suite.server.startAgain();
    await waitFor(() => pipeline.state === 'streaming', { timeout: 20_000 });
    expect(await countApplied(target)).toMatchObject({ applied: 0 });
    await pipeline.caughtUp();
    expect(calls()).toBe(2);
    expect(pipeline.halt).toBeNull();
    expect(await sumsOf(target)).toEqual(await sumsOf(source));
    expect(await countApplied(target)).toEqual(ONCE);
  });
});
