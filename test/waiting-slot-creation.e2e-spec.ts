import { describe, expect, it } from 'vitest';
import type { Pipeline } from '../lib/engine/pipeline.js';
import { capture, inserted } from './support/capture.js';
import { lifeline } from './support/killed-client.js';
import { readSlot, walsenderPid } from './support/logical-slot.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer();

/** A wait is reported after ten seconds. */
const LONG = { timeout: 25_000 };

function warningsOf(pipeline: Pipeline): string[] {
  const warnings: string[] = [];
  pipeline.on('warning', ({ message }) => warnings.push(message));
  return warnings;
}

/** Waits until the server begins to create the slot, and gives the process id of the session that does. */
function creator(source: TestDatabase): Promise<number> {
  return waitFor(
    async () => {
      const pid = await walsenderPid(source, `slot_${source.name}`);
      const waits = await source.query(
        "select from pg_locks where pid = $1 and locktype = 'transactionid' and not granted",
        [pid],
      );
      return waits.length === 0 ? null : pid;
    },
    { message: 'the creation to wait' },
  );
}

async function isGone(source: TestDatabase, pid: number): Promise<boolean> {
  const rows = await source.query(
    'select from pg_stat_activity where pid = $1',
    [pid],
  );
  return rows.length === 0;
}

/** What the server must not keep of a creation that was given up. */
async function expectNothingLeft(
  source: TestDatabase,
  pid: number,
): Promise<void> {
  expect(await readSlot(source, `slot_${source.name}`)).toBeNull();
  expect(await isGone(source, pid)).toBe(true);
  expect(
    await source.query(
      "select from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())",
    ),
  ).toEqual([]);
}

describe('a slot whose creation waits', () => {
  it('for an old transaction says for whose, and since when, and goes on when that ends (I01)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const old = await source.connect();
    await old.query("set application_name = 'nightly batch'");
    await old.query('begin; insert into t values (1)');
    const { rows } = await old.query<{ pid: number }>(
      'select pg_backend_pid() as pid',
    );
    const pid = rows[0]?.pid;
    const { pipeline, applied } = capture(source, { target });
    const warnings = warningsOf(pipeline);
    const began = Date.now();
    pipeline.start();
    await creator(source);
    expect(pipeline.status().waiting).toBeNull();
    const first = await waitFor(() => pipeline.status().waiting, LONG);
    expect(Date.now() - began).toBeGreaterThanOrEqual(10_000);
    expect(first).toMatchObject({
      what: 'slot',
      for: 'transaction',
      pid,
      name: 'nightly batch',
    });
    expect(first.ageSeconds).toBeGreaterThanOrEqual(10);
    expect(new Date(first.since).getTime()).toBeGreaterThanOrEqual(began);
    expect(pipeline.state).toBe('connecting');
    expect(pipeline.reason).toBe(
      `the creation of the slot waits for the transaction of process ${pid} of the server (application_name nightly batch), which is ${first.ageSeconds} s old`,
    );

    // It is looked at again, and a person is told once.
    const later = await waitFor(() => {
      const { waiting } = pipeline.status();
      return (waiting?.ageSeconds ?? 0) > (first.ageSeconds ?? 0)
        ? waiting
        : null;
    }, LONG);
    expect(later.since).toBe(first.since);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain(`process ${pid} of the server`);

    await old.query('commit');
    await pipeline.whenStreaming();
    expect(pipeline.status()).toMatchObject({ waiting: null, reason: null });
    await source.query('insert into t values (2)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([2]);
  }, 60_000);

  it('for a prepared transaction gives its name (I04)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    await source.query(
      "begin; insert into t values (1); prepare transaction 'stuck\u0007 here'",
    );
    const { pipeline } = capture(source, { target });
    const warnings = warningsOf(pipeline);
    pipeline.start();
    const waiting = await waitFor(() => pipeline.status().waiting, LONG);
    expect(waiting).toMatchObject({
      for: 'prepared_transaction',
      pid: null,
      name: 'stuck here',
    });
    expect(waiting.ageSeconds).toBeGreaterThanOrEqual(10);
    expect(warnings).toEqual([pipeline.reason]);
    await source.query("rollback prepared 'stuck\u0007 here'");
    await pipeline.whenStreaming();
    expect(pipeline.status().waiting).toBeNull();
  }, 60_000);

  it('says so with the rights of a role that may only replicate', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const user = `replicator_${source.name}`;
    await source.query(
      `create role ${user} login replication password 'secret'`,
    );
    const old = await source.connect();
    await old.query('begin; insert into t values (1)');
    const { pipeline } = capture(source, {
      target,
      connection: { ...source.connection, user, password: 'secret' },
    });
    pipeline.start();
    const pid = await creator(source);
    const waiting = await waitFor(() => pipeline.status().waiting, LONG);
    expect(waiting.pid).toBeGreaterThan(0);
    expect(waiting.ageSeconds).toBeNull();
    await pipeline.stop();
    await expectNothingLeft(source, pid);
    await old.query('rollback');
    await source.query(`drop role ${user}`);
  }, 60_000);

  it('is cancelled on the server when the pipeline stops (I01)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const old = await source.connect();
    await old.query('begin; insert into t values (1)');
    const { pipeline, applied } = capture(source, { target });
    const warnings = warningsOf(pipeline);
    for (let round = 0; round < 3; round += 1) {
      pipeline.start();
      const pid = await creator(source);
      await pipeline.stop();
      await expectNothingLeft(source, pid);
    }
    expect(pipeline.state).toBe('stopped');
    expect(warnings).toEqual([]);
    await old.query('commit');
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (2)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([2]);
  });

  it('is cancelled on the server when its connection is lost, and begun anew', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const old = await source.connect();
    await old.query('begin; insert into t values (1)');
    const { proxy, connection } = await lifeline(source);
    const { pipeline } = capture(source, { target, connection });
    pipeline.start();
    const pid = await creator(source);
    proxy.reset();
    // Sooner than the server looks for its client.
    await waitFor(() => isGone(source, pid), { timeout: 6_000 });
    const next = await waitFor(async () => {
      const found = (await readSlot(source, `slot_${source.name}`))?.activePid;
      return found === pid ? null : found;
    });
    expect(next).not.toBe(pid);
    await old.query('commit');
    await pipeline.whenStreaming();
  });

  it('is begun anew when its connection died without a word', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const old = await source.connect();
    await old.query('begin; insert into t values (1)');
    const { proxy, connection } = await lifeline(source);
    let current = connection;
    const { pipeline } = capture(source, {
      target,
      connection: () => ({ ...current }),
    });
    pipeline.start();
    await creator(source);
    await waitFor(() => pipeline.status().waiting, LONG);
    // The slot is created, and nobody ever learns of it.
    proxy.cut();
    current = source.connection;
    await old.query('commit');
    await waitFor(() => pipeline.state === 'streaming', {
      timeout: 30_000,
      message: `a stream; ${pipeline.reason}`,
    });
    expect(pipeline.status().waiting).toBeNull();
  }, 60_000);

  it('is given up by the server when the process was killed, which can cancel nothing (I01)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const old = await source.connect();
    await old.query('begin; insert into t values (1)');
    const killed = await lifeline(source);
    const first = capture(source, { target, connection: killed.connection });
    first.pipeline.start();
    const pid = await creator(source);
    // Neither it nor what it might send to cancel reaches the server any more; the server sees the end of the connection.
    await killed.proxy.close();
    const second = capture(source, { target });
    second.pipeline.start();
    await waitFor(() => isGone(source, pid), { timeout: 20_000 });
    const next = await waitFor(async () => {
      const found = (await readSlot(source, `slot_${source.name}`))?.activePid;
      return found === pid ? null : found;
    });
    await old.query('commit');
    await second.pipeline.whenStreaming();
    expect(await walsenderPid(source, `slot_${source.name}`)).toBe(next);
  }, 60_000);
});
