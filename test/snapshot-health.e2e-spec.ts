import { HealthIndicatorService } from '@nestjs/terminus';
import { ReplicantRegistry } from 'nestjs-replicant';
import { ReplicantHealthIndicator } from 'nestjs-replicant/terminus';
import { describe, expect, it, onTestFinished } from 'vitest';
import type {
  AnySnapshotRow,
  SnapshotContext,
} from '../lib/engine/model/snapshot.js';
import type { Pipeline } from '../lib/engine/pipeline.js';
import { capture, type CaptureOptions } from './support/capture.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import { deferred, waitFor } from './support/wait-for.js';

const suite = useServer();

const TABLES = `
  create table a(id int primary key); insert into a select generate_series(1, 2500); analyze a;
  create table b(id int primary key); insert into b select generate_series(1, 2500); analyze b;
  create publication p for table a, b;
`;

type Snapshot = (
  rows: readonly AnySnapshotRow[],
  context: SnapshotContext,
) => Promise<void>;

/** Options of a pipeline that copies with this handler. */
function copying(
  target: CaptureOptions['target'],
  snapshot: CaptureOptions['snapshot'],
  handler: Snapshot,
): CaptureOptions {
  return {
    target,
    goForwardOnly: false,
    snapshot: snapshot ?? true,
    // So that each probe asks anew.
    health: { stalledAfter: 400, cacheFor: 1, timeout: 10_000 },
    sink: { snapshot: handler },
  };
}

/** What liveness and readiness say, and what readiness shows of the pipeline. */
function health(pipeline: Pipeline): {
  readonly live: () => unknown;
  readonly ready: () => unknown;
  readonly shows: (part: object) => void;
} {
  const indicator = new ReplicantHealthIndicator(
    new ReplicantRegistry([pipeline]),
    new HealthIndicatorService(),
  );
  return {
    live: () => indicator.liveness()['replicant']?.status,
    ready: () => indicator.readiness()['replicant']?.status,
    shows: (part) =>
      expect(indicator.readiness()).toMatchObject({
        replicant: { pipelines: { test: part } },
      }),
  };
}

describe('health', () => {
  it('is degraded during an initial snapshot, with its figures, and liveness is down when a handler hangs', async () => {
    const { source, target } = await sourceAndTarget(suite, TABLES);
    const release = deferred();
    onTestFinished(() => release.resolve());
    const { pipeline } = capture(
      source,
      copying(target, true, async (rows, { relation }) => {
        if (relation === 'public.b' && rows.length > 0) await release.promise;
      }),
    );
    const { live, ready, shows } = health(pipeline);
    pipeline.start();
    // One table is copied, and the handler of the other one does not answer.
    await waitFor(() => pipeline.status().snapshot?.tablesDone === 1);
    shows({
      state: 'snapshotting',
      snapshot: {
        mode: 'initial',
        state: 'copying',
        tablesDone: 1,
        tablesTotal: 2,
        rows: 2_500,
        estimatedRows: 5_000,
      },
    });
    await waitFor(() => live() === 'down');
    shows({ conditions: ['snapshotting', 'stalled'], health: 'down' });
    release.resolve();
    await pipeline.whenStreaming();
    expect(live()).toBe('up');
    await waitFor(() => ready() === 'up');
    shows({
      conditions: ['streaming'],
      snapshot: {
        state: 'complete',
        tablesDone: 2,
        rows: 5_000,
        estimatedRows: 5_000,
        secondsRemaining: 0,
      },
      neverCopied: { count: 0, tables: [] },
    });
  });

  it('is degraded during an incremental snapshot beside the stream', async () => {
    const { source, target } = await sourceAndTarget(suite, TABLES);
    const release = deferred();
    onTestFinished(() => release.resolve());
    let rowsTaken = 0;
    const { pipeline } = capture(
      source,
      copying(target, { mode: 'incremental' }, async (rows) => {
        rowsTaken += rows.length;
        if (rowsTaken > 1_000) await release.promise;
      }),
    );
    const { ready, shows } = health(pipeline);
    pipeline.start();
    await pipeline.whenStreaming();
    await waitFor(() => rowsTaken > 1_000);
    shows({
      state: 'streaming',
      health: 'degraded',
      conditions: ['streaming', 'copying'],
      snapshot: { mode: 'incremental', state: 'copying', rows: 1_000 },
    });
    release.resolve();
    await waitFor(() => ready() === 'up');
    shows({ snapshot: { state: 'complete', rows: 5_000, tablesDone: 2 } });
  });

  it('names tables that came to the publication later, until they are copied', async () => {
    const { source, target } = await sourceAndTarget(suite, TABLES);
    const { pipeline } = capture(
      source,
      copying(target, { mode: 'incremental' }, async () => {}),
    );
    const { ready, shows } = health(pipeline);
    pipeline.start();
    await waitFor(() => pipeline.status().snapshot?.state === 'complete');
    expect(ready()).toBe('up');
    await source.query(
      `create table late(id int primary key); insert into late values (1);
       create table "Later on"(id int primary key);
       alter publication p add table late, "Later on"`,
    );
    await waitFor(() => ready() === 'degraded');
    shows({
      health: 'degraded',
      conditions: ['streaming', 'not_copied'],
      neverCopied: { count: 2, tables: ['public.Later on', 'public.late'] },
    });
    // Also for a process that begins now.
    await pipeline.stop();
    pipeline.start();
    await pipeline.whenStreaming();
    expect(pipeline.status().neverCopied?.count).toBe(2);
    await pipeline.snapshot(['public.late', 'public.Later on']);
    await waitFor(() => ready() === 'up');
    shows({ neverCopied: { count: 0, tables: [] } });
  });
});
