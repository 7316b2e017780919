import { describe, expect, it } from 'vitest';
import type { Pipeline } from '../lib/engine/pipeline.js';
import type { SourceWait } from '../lib/engine/telemetry/source-wait.js';
import { copying, type Copying } from './support/copying.js';
import {
  Copying as InitialCopying,
  exportSnapshot,
} from './support/initial-copying.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer();

/** A wait is reported after ten seconds. */
const LONG = { timeout: 25_000 };

const CHUNKS = { mode: 'incremental', chunkRows: 10 } as const;

function populated() {
  return sourceAndTarget(
    suite,
    `create table t(id int primary key, v text); create publication p for table t;
     insert into t select g, 'v' from generate_series(1, 100) g`,
  );
}

/** A transaction that goes on. */
async function open(source: TestDatabase, sql: string) {
  const client = await source.connect();
  await client.query("set application_name = 'nightly batch'; begin");
  await client.query(sql);
  const { rows } = await client.query<{ pid: number }>(
    'select pg_backend_pid() as pid',
  );
  return { pid: rows[0]?.pid, end: () => client.query('rollback') };
}

/** Copies some rows, and stops. */
async function interrupted(
  source: TestDatabase,
  target: TestDatabase,
): Promise<void> {
  const first = copying(source, { target, snapshot: CHUNKS });
  first.pipeline.start();
  await waitFor(() => first.copied.length >= 3);
  await first.pipeline.stop();
}

function warningsOf(pipeline: Pipeline): string[] {
  const warnings: string[] = [];
  pipeline.on('warning', ({ message }) => warnings.push(message));
  return warnings;
}

async function expectNoWait({ pipeline }: Copying): Promise<void> {
  await waitFor(() => pipeline.status().snapshot?.state === 'complete', LONG);
  await pipeline.whenStreaming();
  expect(pipeline.status()).toMatchObject({ waiting: null, reason: null });
}

describe('a copy that waits', () => {
  it('for transactions that were open when it went on says for whose, while the stream goes on', async () => {
    const { source, target } = await populated();
    await target.query('create table t(id int primary key, v text)');
    await interrupted(source, target);
    const { pid, end } = await open(source, 'insert into t values (500)');
    const copy = copying(source, { target, snapshot: CHUNKS });
    const { pipeline } = copy;
    const warnings = warningsOf(pipeline);
    const began = Date.now();
    pipeline.start();
    const waiting = await waitFor(() => pipeline.status().waiting, LONG);
    expect(Date.now() - began).toBeGreaterThanOrEqual(10_000);
    expect(waiting).toMatchObject({
      what: 'copy',
      for: 'transaction',
      pid,
      name: 'nightly batch',
    });
    expect(new Date(waiting.since).getTime()).toBeGreaterThanOrEqual(began);
    expect(pipeline.state).toBe('streaming');
    expect(pipeline.reason).toContain(
      `copying rows waits for the transaction of process ${pid} of the server (application_name nightly batch), which is `,
    );
    expect(warnings).toHaveLength(1);
    await source.query("insert into t values (600, 'beside')");
    await pipeline.caughtUp();
    await end();
    await expectNoWait(copy);
    expect(warnings).toHaveLength(1);
  }, 60_000);

  it('for a lock says who has it, also before it streams', async () => {
    const { source, target } = await populated();
    await target.query('create table t(id int primary key, v text)');
    await interrupted(source, target);
    const { pid, end } = await open(source, 'lock table t');
    const copy = copying(source, { target, snapshot: CHUNKS });
    const { pipeline } = copy;
    const warnings = warningsOf(pipeline);
    pipeline.start();
    const waiting = await waitFor(() => pipeline.status().waiting, LONG);
    expect(waiting).toMatchObject({
      what: 'copy',
      for: 'lock',
      pid,
      name: 'nightly batch',
    });
    expect(waiting.ageSeconds).toBeGreaterThanOrEqual(10);
    expect(pipeline.reason).toContain(
      `copying rows waits for a lock on a table, and so for the transaction of process ${pid} of the server (application_name nightly batch), which is `,
    );
    expect(warnings).toHaveLength(1);
    await end();
    await expectNoWait(copy);
  }, 60_000);

  it('for a lock of a prepared transaction gives its name, and takes no word of it along to a stop', async () => {
    const { source, target } = await populated();
    await target.query('create table t(id int primary key, v text)');
    await interrupted(source, target);
    await source.query("begin; lock table t; prepare transaction 'stuck'");
    const { pipeline } = copying(source, { target, snapshot: CHUNKS });
    pipeline.start();
    const waiting = await waitFor(() => pipeline.status().waiting, LONG);
    expect(waiting).toMatchObject({
      what: 'copy',
      for: 'prepared_transaction',
      pid: null,
      name: 'stuck',
    });
    await pipeline.stop();
    expect(pipeline.status()).toMatchObject({
      state: 'stopped',
      waiting: null,
      reason: null,
    });
    await source.query("rollback prepared 'stuck'");
  }, 60_000);

  it('before the stream for a lock that was taken behind its slot says so as well', async () => {
    const { source } = await populated();
    const exported = await exportSnapshot(source);
    const { pid, end } = await open(source, 'lock table t');
    const waits: (SourceWait | null)[] = [];
    const copy = new InitialCopying(source, exported);
    const running = copy.run({
      target: {
        connection: source.url,
        applicationName: 'copier',
        signal: copy.abort.signal,
        waiting: (wait) => waits.push(wait),
      },
    });
    await waitFor(() => waits.length > 0, LONG);
    expect(waits[0]).toMatchObject({ what: 'copy', for: 'lock', pid });
    await end();
    await running;
    expect(waits.at(-1)).toBeNull();
    expect(copy.records('public.t')).toHaveLength(100);
  }, 60_000);
});
