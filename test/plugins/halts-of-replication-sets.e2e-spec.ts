import { describe, expect, it } from 'vitest';
import { capture, inserted } from '../support/capture.js';
import { haltedFor, slotAndCheckpoint } from '../support/halted.js';
import { pglogicalSource } from '../support/pglogical-source.js';
import { noPluginServer, usePluginServer } from '../support/plugin-suite.js';
import { sourceAndTarget } from '../support/source-and-target.js';
import type { TestDatabase } from '../support/test-database.js';

const NOTHING = { slots: [], checkpoints: [] };

describe.skipIf(noPluginServer)('a replication set', () => {
  const suite = usePluginServer();

  it.each([
    ['the extension', 'select', 'the database has no extension pglogical'],
    ['a node', 'create extension pglogical', 'no replication set default'],
  ])('is missing without %s', async (_, ddl, detail) => {
    const { source, target } = await sourceAndTarget(suite, ddl);
    const { pipeline } = capture(source, {
      target,
      decoder: 'pglogical',
      replicationSets: 'default',
    });
    pipeline.start();
    const halt = await haltedFor(pipeline, 'decoder/replication_set_missing');
    expect(halt.detail).toBe(detail);
    expect(await slotAndCheckpoint(source, target)).toEqual(NOTHING);
  });

  it('is missing when nobody has created it, and is named with its quotes', async () => {
    const { source, target } = await pglogicalSource(suite);
    const { pipeline } = capture(source, {
      target,
      decoder: 'pglogical',
      replicationSets: ['default', 'Default', 'a "b"'],
    });
    pipeline.start();
    const halt = await haltedFor(pipeline, 'decoder/replication_set_missing');
    expect(halt.detail).toBe('no replication set "Default", "a ""b"""');
    expect(await slotAndCheckpoint(source, target)).toEqual(NOTHING);
  });

  it('is missing when it is dropped while its changes are pending, which stay unreadable when it is created again', async () => {
    const { source, target } = await pglogicalSource(suite);
    await createSet(source);
    const { pipeline, applied } = capture(source, {
      target,
      decoder: 'pglogical',
      replicationSets: ['s'],
      maxCommandRetries: 1,
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await pipeline.caughtUp();
    await pipeline.stop();
    await source.query('insert into t values (2)');
    await source.query(`select pglogical.drop_replication_set('s')`);
    const before = await slotAndCheckpoint(source, target);
    pipeline.start();
    const halt = await haltedFor(pipeline, 'decoder/replication_set_missing');
    expect(halt.detail).toBe('no replication set s');
    expect(await slotAndCheckpoint(source, target)).toEqual(before);

    await source.query('insert into t values (3)');
    await createSet(source);
    pipeline.start();
    await haltedFor(pipeline, 'command_error/exhausted');
    // The error may overtake what was decoded before it.
    expect([[1], [1, 2]]).toContainEqual(inserted(applied, 'id'));
  });

  it('is missing when it is dropped while it streams', async () => {
    const { source, target } = await pglogicalSource(suite);
    await createSet(source);
    const { pipeline, applied } = capture(source, {
      target,
      decoder: 'pglogical',
      replicationSets: ['default', 's'],
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await pipeline.caughtUp();
    await source.query(`select pglogical.drop_replication_set('s')`);
    await source.query('insert into t values (2)');
    await haltedFor(pipeline, 'decoder/replication_set_missing');
    expect(inserted(applied, 'id')).toEqual([1]);
  });

  it('may not have the table of the checkpoint', async () => {
    const { source } = await pglogicalSource(suite);
    const options = {
      target: source,
      decoder: 'pglogical',
      replicationSets: 'default',
    } as const;
    const first = capture(source, options);
    first.pipeline.start();
    await first.pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await first.pipeline.caughtUp();
    await first.pipeline.stop();
    await source.query(
      `select pglogical.replication_set_add_table('default', 'replicant_checkpoints')`,
    );
    const before = await slotAndCheckpoint(source, source);
    const { pipeline, applied } = capture(source, options);
    pipeline.start();
    const halt = await haltedFor(pipeline, 'preflight/self_feeding');
    expect(halt.detail).toBe(
      'the replication set "default" has the checkpoint table public.replicant_checkpoints; remove it there by pglogical.replication_set_remove_table',
    );
    expect(await slotAndCheckpoint(source, source)).toEqual(before);
    await source.query(
      `select pglogical.replication_set_remove_table('default', 'replicant_checkpoints')`,
    );
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (2)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([2]);
  });
});

async function createSet(source: TestDatabase): Promise<void> {
  await source.query(`select pglogical.create_replication_set('s')`);
  await source.query(`select pglogical.replication_set_add_table('s', 't')`);
}
