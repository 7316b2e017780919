import { describe, expect, it, onTestFinished } from 'vitest';
import { PipelineStateError } from '../lib/engine/pipeline/state-error.js';
import { answeringProxy } from './support/answering-proxy.js';
import { inserted } from './support/capture.js';
import {
  allowCommits,
  refuseCommits,
  sessionsNamed,
} from './support/checkpoint-stores.js';
import { haltedFor, slotAndCheckpoint } from './support/halted.js';
import {
  libraryCapture,
  streamingAfterOne,
} from './support/library-capture.js';
import {
  sourceAndTarget,
  writeNoise,
  type SourceAndTarget,
} from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '4s' } });

const SESSION = 'nestjs-replicant test';

function checkpoint(target: TestDatabase): Promise<unknown[]> {
  return target.query('select commit_lsn from replicant_checkpoints');
}

describe('a store that cannot be read', () => {
  it('is tried again as often as maxRetries says, each time by a new connect, and then halts', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const proxy = await answeringProxy(target.connection, 'login');
    proxy.sqlstate = '57P03';
    proxy.times = Infinity;
    const { pipeline, applied, retries } = libraryCapture(source, target, {
      connection: { ...target.connection, port: proxy.port },
      maxRetries: 3,
    });
    const delays: number[] = [];
    pipeline.on('reconnect', ({ delayMilliseconds }) =>
      delays.push(delayMilliseconds),
    );
    pipeline.start();
    const halt = await haltedFor(pipeline, 'checkpoint_store/unavailable');
    expect(halt.detail).toBe(
      'server error 57P03 (cannot_connect_now), at 4 attempts',
    );
    expect(halt.lsn).toBeNull();
    expect(retries).toEqual(
      [1, 2, 3].map((attempt) => ({
        of: 'checkpoint',
        reason: 'server error 57P03 (cannot_connect_now)',
        attempt,
        maxRetries: 3,
        delayMilliseconds: 50,
      })),
    );
    expect(delays).toEqual([50, 50, 50]);
    expect(proxy.answered).toBe(4);

    // The next start counts anew.
    proxy.times = 3;
    pipeline.start();
    await pipeline.whenStreaming();
    expect(retries).toHaveLength(6);
    expect(proxy.answered).toBe(7);
    await source.query('insert into t values (1)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1]);

    // So does a read that fails after one that did not.
    proxy.times = 3;
    await dropSessions(target);
    await source.query(
      `select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = 'slot_${source.name}'`,
    );
    await waitFor(() => retries.length === 9);
    await pipeline.whenStreaming();
    expect(pipeline.halt).toBeNull();
  });

  it('halts on the first failure without retries', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline, retries } = libraryCapture(source, target, {
      connection: { ...target.connection, port: 1 },
      maxRetries: 0,
    });
    pipeline.start();
    const halt = await haltedFor(pipeline, 'checkpoint_store/unavailable');
    expect(halt.detail).toBe('connection lost (ECONNREFUSED), at 1 attempt');
    expect(retries).toEqual([]);
  });

  it('stops at once between two attempts', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline, retries } = libraryCapture(source, target, {
      connection: { ...target.connection, port: 1 },
      retryBackoffMs: 60_000,
    });
    pipeline.start();
    await waitFor(() => retries.length === 1);
    expect(pipeline.reason).toBe(
      'the checkpoint store is not available: connection lost (ECONNREFUSED)',
    );
    await pipeline.stop();
    expect(pipeline.state).toBe('stopped');
  });
});

describe('a write of the checkpoint that fails', () => {
  it('is made again until it heals, and the sink is not called again', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline, calls, retries } = libraryCapture(source, target, {
      maxRetries: 1_000,
    });
    await streamingAfterOne(pipeline, source);
    await refuseCommits(target);
    await source.query('insert into t values (2)');
    await source.query('insert into t values (3)');
    await waitFor(() => retries.length >= 3);
    expect(inserted(calls, 'id')).toEqual([1, 2]);
    await allowCommits(target);
    await pipeline.caughtUp();
    expect(inserted(calls, 'id')).toEqual([1, 2, 3]);
    expect(retries.slice(0, 2)).toEqual(
      [1, 2].map((attempt) => ({
        of: 'checkpoint',
        reason: 'server error 23514',
        attempt,
        maxRetries: 1_000,
        delayMilliseconds: 50,
      })),
    );
  });

  it('is no handler that hangs, however long it takes', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline, retries } = libraryCapture(source, target, {
      maxRetries: 1_000,
      retryBackoffMs: 100,
    });
    await streamingAfterOne(pipeline, source);
    await refuseCommits(target);
    await source.query('insert into t values (2)');
    const runningLong = (): number =>
      pipeline.status().handler?.runningMilliseconds ?? 0;
    await waitFor(() => runningLong() > 1_500);
    const tried = retries.length;
    await waitFor(() => retries.length > tried);
    expect(pipeline.status().handler?.idleMilliseconds).toBeLessThan(1_000);
    await allowCommits(target);
    await pipeline.caughtUp();
    expect(pipeline.status().handler).toBeNull();
  });

  it.each([0, 2])(
    'halts after %i retries; the sink has the row, the checkpoint is unchanged, and one comes again',
    async (maxRetries) => {
      const { source, target } = await sourceAndTarget(suite);
      const { pipeline, calls, retries } = libraryCapture(source, target, {
        maxRetries,
      });
      await streamingAfterOne(pipeline, source);
      await refuseCommits(target);
      const before = await checkpoint(target);
      await source.query('insert into t values (2)');
      await source.query('insert into t values (3)');
      const halt = await haltedFor(pipeline, 'checkpoint_store_failed');
      expect(halt.lsn).toBe(calls.at(-1)?.commitLsn);
      expect(halt.detail).toBe(
        `server error 23514, at ${maxRetries === 0 ? '1 attempt' : '3 attempts'}`,
      );
      expect(retries.map(({ attempt }) => attempt)).toEqual(
        [1, 2].slice(0, maxRetries),
      );
      expect(inserted(calls, 'id')).toEqual([1, 2]);
      expect(await checkpoint(target)).toEqual(before);
      await waitFor(
        async () => (await sessionsNamed(target, SESSION)).length === 0,
      );

      await allowCommits(target);
      pipeline.start();
      await pipeline.whenStreaming();
      await pipeline.caughtUp();
      expect(inserted(calls, 'id')).toEqual([1, 2, 2, 3]);
    },
  );

  it('halts too when a position without a transaction cannot be stored', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline, retries } = libraryCapture(source, target, {
      maxRetries: 1,
    });
    await streamingAfterOne(pipeline, source);
    await target.query(
      `alter table replicant_checkpoints add constraint refused check (confirmed_lsn is null) not valid`,
    );
    await writeNoise(source);
    const halt = await haltedFor(pipeline, 'checkpoint_store_failed');
    expect(halt.lsn).toBeNull();
    expect(retries).toHaveLength(1);
    await target.query(
      'alter table replicant_checkpoints drop constraint refused',
    );
    pipeline.start();
    await pipeline.whenStreaming();
  });

  it('does not keep a stop waiting longer than drainTimeout', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline, calls, retries } = libraryCapture(
      source,
      target,
      { retryBackoffMs: 60_000 },
      { drainTimeout: 200 },
    );
    await streamingAfterOne(pipeline, source);
    await refuseCommits(target);
    await source.query('insert into t values (2)');
    await waitFor(() => retries.length === 1);
    const began = performance.now();
    await pipeline.stop();
    expect(performance.now() - began).toBeLessThan(5_000);
    expect(await sessionsNamed(target, SESSION)).toEqual([]);
    await allowCommits(target);
    pipeline.start();
    await pipeline.whenStreaming();
    await pipeline.caughtUp();
    expect(inserted(calls, 'id')).toEqual([1, 2, 2]);
  });

  it('heals while the pipeline drains, and then nothing comes again', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline, calls, retries } = libraryCapture(source, target, {
      maxRetries: 1_000,
    });
    await streamingAfterOne(pipeline, source);
    await refuseCommits(target);
    await source.query('insert into t values (2)');
    await waitFor(() => retries.length > 0);
    const stopped = pipeline.stop();
    await allowCommits(target);
    await stopped;
    pipeline.start();
    await pipeline.whenStreaming();
    await pipeline.caughtUp();
    expect(inserted(calls, 'id')).toEqual([1, 2]);
  });
});

describe('what does not pass by itself halts at once', () => {
  it.each([
    [
      'a column of another type',
      'alter table replicant_checkpoints alter commit_lsn type text',
      'in public.replicant_checkpoints: commit_lsn is text, not pg_lsn',
    ],
    [
      'several columns that are missing or others',
      `alter table replicant_checkpoints drop relations, drop timeline, add timeline bigint not null default 1`,
      'in public.replicant_checkpoints: relations (jsonb) is missing; timeline is bigint, not integer',
    ],
    [
      'a table of another kind',
      'drop table replicant_checkpoints; create table replicant_checkpoints (slot_name text primary key, commit_lsn bigint not null, updated_at timestamptz not null default now())',
      'in public.replicant_checkpoints: commit_lsn is bigint, not pg_lsn; confirmed_lsn (pg_lsn) is missing; relations (jsonb) is missing; system_identifier (text) is missing; timeline (integer) is missing',
    ],
    [
      'a missing key',
      'alter table replicant_checkpoints drop constraint replicant_checkpoints_pkey, add unique (slot_name, timeline)',
      'in public.replicant_checkpoints: slot_name has no primary key or unique index of its own',
    ],
    [
      'a view of a checkpoint table',
      'alter table replicant_checkpoints rename to hidden; create view replicant_checkpoints as select xmin, * from hidden',
      'in public.replicant_checkpoints: slot_name has no primary key or unique index of its own',
    ],
  ])('the table: %s', async (_, sql, detail) => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline, retries } = libraryCapture(source, target);
    await streamingAfterOne(pipeline, source);
    await pipeline.stop();
    await target.query(sql);
    const before = await slotAndCheckpoint(source, target);
    pipeline.start();
    const halt = await haltedFor(pipeline, 'checkpoint_store/schema');
    expect(halt.detail).toBe(detail);
    expect(retries).toEqual([]);
    expect(await slotAndCheckpoint(source, target)).toEqual(before);
    expect(await sessionsNamed(target, SESSION)).toEqual([]);
  });

  it('a privilege: the table cannot be created, or not be read', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const connection = await roleOf(target);
    const { pipeline, retries } = libraryCapture(source, target, {
      connection,
    });
    const detail =
      'server error 42501 (insufficient_privilege) while reading the checkpoint';
    pipeline.start();
    expect((await haltedFor(pipeline, 'checkpoint_store/refused')).detail).toBe(
      detail,
    );
    const owner = libraryCapture(source, target);
    await streamingAfterOne(owner.pipeline, source);
    await owner.pipeline.stop();
    pipeline.start();
    expect((await haltedFor(pipeline, 'checkpoint_store/refused')).detail).toBe(
      detail,
    );
    expect(retries).toEqual([]);
  });

  it('a privilege: the table may be read and not written', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const owner = libraryCapture(source, target);
    await streamingAfterOne(owner.pipeline, source);
    await owner.pipeline.stop();
    const connection = await roleOf(target);
    await target.query(
      `grant select on replicant_checkpoints to ${connection.user}`,
    );
    const before = await checkpoint(target);
    const { pipeline, calls, retries } = libraryCapture(source, target, {
      connection,
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (2)');
    const halt = await haltedFor(pipeline, 'checkpoint_store/refused');
    expect(halt.lsn).toBe(calls[0]?.commitLsn);
    expect(halt.detail).toBe(
      'server error 42501 (insufficient_privilege) while writing the checkpoint',
    );
    expect(inserted(calls, 'id')).toEqual([2]);
    expect(retries).toEqual([]);
    expect(await checkpoint(target)).toEqual(before);
    await target.query(
      `grant insert, update on replicant_checkpoints to ${connection.user}`,
    );
    pipeline.start();
    await pipeline.whenStreaming();
    await pipeline.caughtUp();
    expect(inserted(calls, 'id')).toEqual([2, 2]);
  });

  it.each([
    [
      'a database that does not exist',
      ({ target }: SourceAndTarget) => ({
        ...target.connection,
        database: 'nowhere',
      }),
      'server error 3D000 (invalid_catalog_name) while reading the checkpoint',
    ],
    [
      'a search path without a schema',
      ({ target }: SourceAndTarget) => ({
        ...target.connection,
        options: '-c search_path=nowhere',
      }),
      'its search_path names no schema that exists while reading the checkpoint',
    ],
  ])('%s', async (_, connectionOf, detail) => {
    const databases = await sourceAndTarget(suite);
    const { source, target } = databases;
    const { pipeline, retries } = libraryCapture(source, target, {
      connection: connectionOf(databases),
    });
    pipeline.start();
    const halt = await haltedFor(pipeline, 'checkpoint_store/refused');
    expect(halt.detail).toBe(detail);
    expect(retries).toEqual([]);
  });

  it('a table that was dropped while it was used', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline, calls, retries } = libraryCapture(source, target);
    await streamingAfterOne(pipeline, source);
    await target.query('drop table replicant_checkpoints');
    await source.query('insert into t values (2)');
    const halt = await haltedFor(pipeline, 'checkpoint_store/refused');
    expect(halt.detail).toBe(
      'server error 42P01 (undefined_table) while writing the checkpoint',
    );
    expect(halt.lsn).toBe(calls.at(-1)?.commitLsn);
    expect(retries).toEqual([]);
  });
});

it('a sink with a checkpoint of its own, or without any, is refused as the option demands', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const { pipeline } = libraryCapture(source, target);
  expect(() => pipeline.attach({ name: 'Second' })).toThrow(PipelineStateError);
  expect(() =>
    libraryCapture(
      source,
      target,
      {},
      { checkpoint: { kind: 'reader', read: async () => null } },
    ),
  ).toThrow(/has a checkpoint of its own, and the option checkpointStore/);
});

/** Ends the sessions of stores in a database, which would else be used on. */
async function dropSessions(target: TestDatabase): Promise<void> {
  for (const pid of await sessionsNamed(target, SESSION))
    await target.query(`select pg_terminate_backend(${pid})`);
}

/** A role of the running test that may log in and nothing else. */
async function roleOf(target: TestDatabase) {
  const user = `role_${target.name}`;
  await target.query(`create role ${user} login password 'pw'`);
  onTestFinished(async () => {
    await target.query(`drop owned by ${user}; drop role ${user}`);
  });
  return { ...target.connection, user, password: 'pw' };
}
