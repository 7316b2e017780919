import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { capture, inserted } from './support/capture.js';
import { haltedFor, slotAndCheckpoint } from './support/halted.js';
import { readSlot } from './support/logical-slot.js';
import { PostgresServer } from './support/postgres-server.js';
import { sourceAndTarget, writeNoise } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '4s' } });
const run = promisify(execFile);

describe('a first start', () => {
  it('without consent to go forward halts with config/go_forward_required and creates nothing', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const refused = capture(source, { target, goForwardOnly: false });
    for (let round = 0; round < 2; round++) {
      refused.pipeline.start();
      await haltedFor(refused.pipeline, 'config/go_forward_required');
      expect(await slotAndCheckpoint(source, target)).toEqual({
        slots: [],
        checkpoints: [],
      });
    }
    const consenting = capture(source, { target });
    consenting.pipeline.start();
    await consenting.pipeline.whenStreaming();
    await consenting.pipeline.stop();
    // With a checkpoint there is nothing left to consent to.
    refused.pipeline.start();
    await refused.pipeline.whenStreaming();
  });

  it('waits while the checkpoint cannot be read, and creates no slot meanwhile', async () => {
    const { source, target } = await sourceAndTarget(suite);
    let available = false;
    const { pipeline, applied } = capture(source, {
      target,
      checkpoint: {
        kind: 'reader',
        async read() {
          if (!available) throw new Error('the store is down');
          return null;
        },
      },
    });
    pipeline.start();
    await waitFor(() => pipeline.status().attempt >= 2);
    expect(pipeline.halt).toBeNull();
    expect(await readSlot(source, `slot_${source.name}`)).toBeNull();
    available = true;
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1]);
  });
});

it.each([undefined, 0, '0/1', -1n])(
  'a checkpoint method that returns %s halts with checkpoint/invalid',
  async (answer) => {
    const { source, target } = await sourceAndTarget(suite);
    const method: { answer: bigint | null } = { answer: null };
    // What a method written in JavaScript may do.
    Object.assign(method, { answer });
    const { pipeline } = capture(source, {
      target,
      checkpoint: { kind: 'reader', read: async () => method.answer },
    });
    pipeline.start();
    await haltedFor(pipeline, 'checkpoint/invalid');
    expect(await readSlot(source, `slot_${source.name}`)).toBeNull();
    method.answer = null;
    pipeline.start();
    await pipeline.whenStreaming();
  },
);

it('a checkpoint of another server halts with session_identity/other_server', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const { pipeline, applied } = capture(source, { target });
  pipeline.start();
  await pipeline.whenStreaming();
  await pipeline.stop();
  const [row] = await target.query<{ system_identifier: string }>(
    'select system_identifier from replicant_checkpoints',
  );
  await source.query('insert into t values (1)');
  await target.query(
    `update replicant_checkpoints set system_identifier = '1'`,
  );
  const before = await slotAndCheckpoint(source, target);
  for (let round = 0; round < 2; round++) {
    pipeline.start();
    await haltedFor(pipeline, 'session_identity/other_server');
    expect(await slotAndCheckpoint(source, target)).toEqual(before);
  }
  await target.query(
    'update replicant_checkpoints set system_identifier = $1',
    [row?.system_identifier],
  );
  pipeline.start();
  await pipeline.caughtUp();
  expect(inserted(applied, 'id')).toEqual([1]);
});

it('a server restored to a time before the checkpoint halts with data_gap/checkpoint_ahead_of_server (A20)', async () => {
  const server = await PostgresServer.start();
  onTestFinished(() => server.remove());
  const source = await server.createDatabase();
  onTestFinished(() => source.close());
  await source.query(
    'create table t(id int primary key, v text); create publication p for table t',
  );
  const target = await suite.database('target');
  const { pipeline, applied } = capture(source, { target });
  pipeline.start();
  await pipeline.whenStreaming();
  await pipeline.stop();
  await server.stop();
  const backup = `${server.dataFolder}.backup`;
  await run('cp', ['-a', server.dataFolder, backup]);
  await server.startAgain();
  await writeNoise(source);
  await source.query('insert into t values (1)');
  pipeline.start();
  await waitFor(() => applied.length === 1);
  await pipeline.stop();
  await server.stop();
  await rm(server.dataFolder, { recursive: true });
  await run('mv', [backup, server.dataFolder]);
  await server.startAgain();
  await source.query('insert into t values (2)');

  const before = await slotAndCheckpoint(source, target);
  for (let round = 0; round < 2; round++) {
    pipeline.start();
    await haltedFor(pipeline, 'data_gap/checkpoint_ahead_of_server');
    expect(await slotAndCheckpoint(source, target)).toEqual(before);
  }
  await pipeline.dropSlot();
  await target.query('delete from replicant_checkpoints');
  pipeline.start();
  await pipeline.whenStreaming();
  await source.query('insert into t values (3)');
  await pipeline.caughtUp();
  expect(inserted(applied, 'id')).toEqual([1, 3]);
}, 60_000);

it('command_error/permanent names SQLSTATE and condition where the database does not exist', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const { pipeline } = capture(source, {
    target,
    connection: { ...source.connection, database: 'nowhere' },
  });
  pipeline.start();
  const { detail } = await haltedFor(pipeline, 'command_error/permanent');
  expect(detail).toContain('3D000 (invalid_catalog_name)');
});
