import { expect, it, onTestFinished } from 'vitest';
import { Pipeline } from '../lib/engine/pipeline.js';
import { CheckpointTable } from '../lib/engine/checkpoint/checkpoint-table.js';
import { capture, inserted } from './support/capture.js';
import { haltedFor } from './support/halted.js';
import { readSlot } from './support/logical-slot.js';
import { present } from './support/present.js';
import {
  sourceAndTarget,
  type SourceAndTarget,
  writeNoise,
} from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '4s' } });

/** The slot and the checkpoint are where the last durable transaction left them, whatever was written since. */
async function expectStandsAt(
  { source, target }: SourceAndTarget,
  end: bigint,
): Promise<void> {
  const stored = await target.query(
    `select confirmed_lsn - '0/0'::pg_lsn as confirmed from replicant_checkpoints`,
  );
  expect(stored).toEqual([{ confirmed: String(end) }]);
  await writeNoise(source, 100);
  const slot = await readSlot(source, `slot_${source.name}`);
  expect(slot?.active).toBe(false);
  expect(slot?.confirmedFlushLsn).toBe(end);
}

it('sink_failed: the error stays reachable, and the same transaction comes again', async () => {
  const databases = await sourceAndTarget(suite);
  const { source, target } = databases;
  const failure = new RangeError('broken');
  let broken = false;
  const { pipeline, applied, calls } = capture(source, {
    target,
    async apply() {
      if (broken) throw failure;
    },
  });
  pipeline.start();
  await pipeline.whenStreaming();
  await source.query('insert into t values (1)');
  await waitFor(() => applied.length === 1);
  broken = true;
  await source.query('insert into t values (2)');
  const halt = await haltedFor(pipeline, 'sink_failed');
  expect(halt.sinkError()).toBe(failure);
  expect(halt.detail).toBe('a handler of TestSink failed with RangeError');
  expect(halt.lsn).toBe(calls[1]?.commitLsn);
  await expectStandsAt(databases, present(applied[0]?.commitEndLsn));
  broken = false;
  pipeline.start();
  await pipeline.caughtUp();
  expect(inserted(calls, 'id')).toEqual([1, 2, 2]);
  expect(inserted(applied, 'id')).toEqual([1, 2]);
});

it('sink_failed: a broken checkpoint table stops the sink before it loses anything', async () => {
  const databases = await sourceAndTarget(suite);
  const { source, target } = databases;
  const { pipeline, applied } = capture(source, { target });
  pipeline.start();
  await pipeline.whenStreaming();
  await source.query('insert into t values (1)');
  await waitFor(() => applied.length === 1);
  await target.query(
    'alter table replicant_checkpoints add constraint broken check (commit_lsn is null) not valid',
  );
  await source.query('insert into t values (2)');
  const halt = await haltedFor(pipeline, 'sink_failed');
  expect(halt.detail).toContain('23514');
  await expectStandsAt(databases, present(applied[0]?.commitEndLsn));
  await target.query(
    'alter table replicant_checkpoints drop constraint broken',
  );
  pipeline.start();
  await pipeline.caughtUp();
  expect(inserted(applied, 'id')).toEqual([1, 2]);
});

it('sink_failed/no_promise: a handler that returns no promise confirms nothing', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const checkpoints = new CheckpointTable((sql, values) =>
    target.query(sql, values),
  );
  const pipeline = new Pipeline('test', {
    connection: { ...source.connection },
    slotName: `slot_${source.name}`,
    publication: 'p',
    goForwardOnly: true,
  });
  onTestFinished(() => pipeline.stop());
  let returns: unknown = undefined;
  const ids: unknown[] = [];
  pipeline.attach({
    name: 'TestSink',
    checkpoint: { kind: 'keeper', keeper: checkpoints },
    transaction(transaction) {
      ids.push(...inserted([transaction], 'id'));
      return returns;
    },
  });
  pipeline.start();
  await pipeline.whenStreaming();
  const start = (await readSlot(source, `slot_${source.name}`))
    ?.confirmedFlushLsn;
  await source.query('insert into t values (1)');
  for (const value of [undefined, true]) {
    returns = value;
    pipeline.start();
    await haltedFor(pipeline, 'sink_failed/no_promise');
    expect(
      (await readSlot(source, `slot_${source.name}`))?.confirmedFlushLsn,
    ).toBe(start);
  }
  returns = Promise.resolve();
  pipeline.start();
  await pipeline.caughtUp();
  expect(new Set(ids)).toEqual(new Set([1]));
  expect(ids.length).toBe(3);
});

it('sink_failed/around_skipped: an option around that does not call next confirms nothing', async () => {
  const databases = await sourceAndTarget(suite);
  const { source, target } = databases;
  let calls = true;
  const { pipeline, applied } = capture(source, {
    target,
    async around(_, next) {
      if (calls) await next();
    },
  });
  pipeline.start();
  await pipeline.whenStreaming();
  await source.query('insert into t values (1)');
  await waitFor(() => applied.length === 1);
  calls = false;
  await source.query('insert into t values (2)');
  await haltedFor(pipeline, 'sink_failed/around_skipped');
  await expectStandsAt(databases, present(applied[0]?.commitEndLsn));
  calls = true;
  pipeline.start();
  await pipeline.caughtUp();
  expect(inserted(applied, 'id')).toEqual([1, 2]);
});

it('an option around that swallows the failure of a handler does not confirm it', async () => {
  const databases = await sourceAndTarget(suite);
  const { source, target } = databases;
  const { pipeline, applied } = capture(source, {
    target,
    around: (_, next) => next().catch(() => {}),
    async apply(transaction) {
      if (inserted([transaction], 'id').includes(2)) throw new Error('broken');
    },
  });
  pipeline.start();
  await pipeline.whenStreaming();
  await source.query('insert into t values (1)');
  await waitFor(() => applied.length === 1);
  await source.query('insert into t values (2)');
  await haltedFor(pipeline, 'sink_failed');
  await expectStandsAt(databases, present(applied[0]?.commitEndLsn));
});
