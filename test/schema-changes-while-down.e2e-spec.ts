import { describe, expect, it, onTestFinished } from 'vitest';
import { formatLsn, type Lsn } from '../lib/engine/model/lsn.js';
import type { SchemaChange } from '../lib/engine/model/schema-change.js';
import {
  capture,
  inserted,
  type Capture,
  type CaptureOptions,
} from './support/capture.js';
import { haltedFor } from './support/halted.js';
import { currentLsn, readSlot } from './support/logical-slot.js';
import { present } from './support/present.js';
import { DESTRUCTIONS, TABLE, toldBy } from './support/schema-changes.js';
import {
  sourceAndTarget,
  type SourceAndTarget,
} from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import { TcpProxy } from './support/tcp-proxy.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer();
const FIRST = `insert into t values (1, 'a', 'b')`;

/** A source whose first row was applied by a process that is gone. */
async function leftBehind(
  options: Partial<CaptureOptions> = {},
): Promise<SourceAndTarget> {
  const both = await sourceAndTarget(
    suite,
    `${TABLE}; create publication p for all tables`,
  );
  const { pipeline } = await started(both, options);
  await both.source.query(FIRST);
  await pipeline.caughtUp(await currentLsn(both.source));
  await pipeline.stop();
  return both;
}

/** As another process would do it: nothing is known but what is stored. */
async function started(
  { source, target }: SourceAndTarget,
  options: Partial<CaptureOptions> = {},
): Promise<Capture & { told: SchemaChange[] }> {
  const captured = capture(source, { target, ...options });
  const told = toldBy(captured.pipeline);
  captured.pipeline.start();
  await captured.pipeline.whenStreaming();
  return { ...captured, told };
}

describe('a change while no process runs', () => {
  it.each(DESTRUCTIONS)(
    'is noticed by the next one, and is asked about ($change: $ddl) (N01, N10)',
    async ({ change, ddl, row }) => {
      const both = await leftBehind();
      await both.source.query(ddl);
      await both.source.query(row);
      const first = await started(both);
      const halt = await haltedFor(first.pipeline, 'schema_change/destructive');
      expect(first.calls).toEqual([]);

      const asked: SchemaChange[] = [];
      const second = await started(both, {
        schemaChange: async (one) => void asked.push(one),
      });
      await second.pipeline.caughtUp(await currentLsn(both.source));
      expect(inserted(second.applied, 'id')).toEqual([2]);
      expect(asked).toMatchObject([{ change, relation: 'public.t' }]);
      expect(halt.lsn).toBe(second.applied[0]?.commitLsn);
      await second.pipeline.stop();

      // The new shape is stored now.
      const third = await started(both);
      await both.source.query(row.replace('(2', '(3'));
      await third.pipeline.caughtUp(await currentLsn(both.source));
      expect(inserted(third.applied, 'id')).toEqual([3]);
    },
  );

  it('passes and is told when it is additive', async () => {
    const both = await leftBehind();
    await both.source.query('alter table t add column c int');
    await both.source.query(`insert into t values (2, 'a', 'b', 3)`);
    const { pipeline, applied, told } = await started(both);
    await pipeline.caughtUp(await currentLsn(both.source));
    expect(inserted(applied, 'c')).toEqual([3]);
    expect(told).toMatchObject([
      {
        change: 'column_added',
        before: { columns: [{ name: 'id' }, { name: 'a' }, { name: 'b' }] },
      },
    ]);
  });

  it('is none when it was undone', async () => {
    const both = await leftBehind();
    await both.source.query(
      `alter table t add column c int; alter table t drop column c; alter table t rename to u; alter table u rename to t`,
    );
    await both.source.query(`insert into t values (2, 'a', 'b')`);
    const { pipeline, applied, told } = await started(both);
    await pipeline.caughtUp(await currentLsn(both.source));
    expect(inserted(applied, 'id')).toEqual([2]);
    expect(told).toEqual([]);
  });

  it('is not noticed where no shape was stored: by an earlier version, or by a checkpoint of the sink (documented)', async () => {
    const both = await leftBehind();
    await both.target.query(
      'update replicant_checkpoints set relations = null',
    );
    await both.source.query('alter table t drop column b');
    await both.source.query(`insert into t values (2, 'a')`);
    const { pipeline, applied } = await started(both);
    await pipeline.caughtUp(await currentLsn(both.source));
    expect(inserted(applied, 'id')).toEqual([2]);
    // From here on it is.
    await both.source.query('alter table t drop column a');
    await both.source.query('insert into t values (3)');
    await haltedFor(pipeline, 'schema_change/destructive');
  });

  it.each([
    ['[1, 2]'],
    ['"text"'],
    ['{"16384": {}, "x": 1}'],
    ['{"16384": "[0]"}'],
  ])('is not noticed, with a warning, where %s is stored', async (json) => {
    const both = await leftBehind();
    await both.target.query(
      'update replicant_checkpoints set relations = $1::jsonb',
      [json],
    );
    await both.source.query('alter table t drop column b');
    const { pipeline, applied } = capture(both.source, {
      target: both.target,
    });
    const warnings: string[] = [];
    pipeline.on('warning', ({ message }) => warnings.push(message));
    pipeline.start();
    await pipeline.whenStreaming();
    await both.source.query(`insert into t values (2, 'a')`);
    await pipeline.caughtUp(await currentLsn(both.source));
    expect(inserted(applied, 'id')).toEqual([2]);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain('cannot be read');
    await pipeline.stop();

    const next = await started(both);
    await both.source.query('alter table t drop column a');
    await both.source.query('insert into t values (3)');
    await haltedFor(next.pipeline, 'schema_change/destructive');
  });
});

describe('a checkpoint of the sink', () => {
  it('is compared with what this process has seen, over connections and starts', async () => {
    const { source, target } = await sourceAndTarget(
      suite,
      `${TABLE}; create publication p for all tables`,
    );
    let applied: Lsn | null = null;
    const { pipeline } = capture(source, {
      target,
      checkpoint: { kind: 'reader', read: () => Promise.resolve(applied) },
      apply: async ({ commitLsn }) => void (applied = commitLsn),
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query(FIRST);
    await pipeline.caughtUp(await currentLsn(source));
    await pipeline.stop();
    await source.query('alter table t drop column b');
    await source.query(`insert into t values (2, 'a')`);
    pipeline.start();
    await haltedFor(pipeline, 'schema_change/destructive');
  });
});

describe('what the server sends again', () => {
  it('below the checkpoint is older than what is stored, and is compared with nothing', async () => {
    const both = await sourceAndTarget(
      suite,
      `${TABLE}; create publication p for all tables`,
    );
    const { source } = both;
    const proxy = await TcpProxy.start(suite.server.connection);
    onTestFinished(() => proxy.close());
    const { host, port } = proxy;
    const schemaChange = async (): Promise<void> => {};
    const first = await started(both, {
      connection: { ...source.connection, host, port },
      schemaChange,
    });
    // The server is told nothing any more, and a new connection is not needed: nothing here needs asking.
    proxy.halfOpen('client-to-server');
    const statements = [
      FIRST,
      'alter table t add column c int',
      `insert into t values (2, 'a', 'b', 3)`,
      'alter table t add column d int',
      `insert into t values (3, 'a', 'b', 3, 4)`,
    ];
    for (const statement of statements) await source.query(statement);
    await waitForIds(first, [1, 2, 3]);
    proxy.reset();
    await first.pipeline.stop();
    await setBack(both);

    const second = await started(both);
    await source.query(`insert into t values (4, 'a', 'b', 3, 4)`);
    await second.pipeline.caughtUp(await currentLsn(source));
    expect(inserted(second.calls, 'id')).toEqual([4]);
    expect(second.told).toEqual([]);
    expect(second.pipeline.halt).toBeNull();
    // What changes after it is noticed.
    await source.query('alter table t drop column c');
    await source.query(`insert into t values (5, 'a', 'b', 4)`);
    await haltedFor(second.pipeline, 'schema_change/destructive');
  });

  it('although it was durable, to a sink that does not advance, is older than what was known', async () => {
    const both = await sourceAndTarget(
      suite,
      `${TABLE}; create publication p for all tables`,
    );
    const { source } = both;
    const proxy = await TcpProxy.start(suite.server.connection);
    onTestFinished(() => proxy.close());
    const { host, port } = proxy;
    const ids: unknown[] = [];
    const { pipeline } = await started(both, {
      connection: { ...source.connection, host, port },
      sink: {
        transaction: async (transaction) =>
          void ids.push(...inserted([transaction], 'id')),
      },
    });
    await source.query(FIRST);
    await source.query('alter table t add column c int');
    await source.query(`insert into t values (2, 'a', 'b', 3)`);
    await waitFor(() => ids.includes(2));
    proxy.reset();
    await waitFor(() => ids.filter((id) => id === 2).length === 2);
    expect(ids).toEqual([1, 2, 1, 2]);
    expect(pipeline.halt).toBeNull();
    await source.query('alter table t drop column c');
    await source.query(`insert into t values (3, 'a', 'b')`);
    await haltedFor(pipeline, 'schema_change/destructive');
  });

  it('below the checkpoint is what later changes are compared with where nothing is stored', async () => {
    const both = await sourceAndTarget(
      suite,
      `${TABLE}; create publication p for all tables`,
    );
    const { source, target } = both;
    const proxy = await TcpProxy.start(suite.server.connection);
    onTestFinished(() => proxy.close());
    const { host, port } = proxy;
    const first = await started(both, {
      connection: { ...source.connection, host, port },
    });
    proxy.halfOpen('client-to-server');
    await source.query(FIRST);
    await waitForIds(first, [1]);
    proxy.reset();
    await first.pipeline.stop();
    await setBack(both);
    await target.query('update replicant_checkpoints set relations = null');
    await source.query('alter table t drop column b');
    await source.query(`insert into t values (2, 'a')`);
    const second = await started(both);
    await haltedFor(second.pipeline, 'schema_change/destructive');
    expect(second.calls).toEqual([]);
  });
});

/** Forgets the boundary, as a checkpoint does that was advanced while transactions arrived: the server sends all of them again. */
async function setBack({ source, target }: SourceAndTarget): Promise<void> {
  const slot = await readSlot(source, `slot_${source.name}`);
  await target.query(
    'update replicant_checkpoints set confirmed_lsn = $1::pg_lsn where commit_lsn > $1::pg_lsn',
    [formatLsn(present(slot?.confirmedFlushLsn))],
  );
}

async function waitForIds(
  { applied }: Capture,
  ids: readonly number[],
): Promise<void> {
  await expect
    .poll(() => inserted(applied, 'id'), { timeout: 10_000 })
    .toEqual(ids);
}
