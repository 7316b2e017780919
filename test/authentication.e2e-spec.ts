import { inspect } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { capture, inserted } from './support/capture.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer({ tls: true });

/** A role that may replicate; its passwords are kept as SCRAM verifiers. */
async function role(source: TestDatabase, password: string): Promise<string> {
  const name = `role_${source.name}`;
  await source.query(
    `create role ${name} login replication password '${password}'`,
  );
  onTestFinished(
    async () => void (await suite.server.query(`drop role ${name}`)),
  );
  return name;
}

describe('credentials', () => {
  it('that were rotated are asked for at every attempt, and attempts slow down to one a minute (G08)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const user = await role(source, 'first-secret');
    let password = 'first-secret';
    let asked = 0;
    const { pipeline, applied } = capture(source, {
      target,
      connection: async () => {
        asked += 1;
        return { ...source.connection, user, password };
      },
    });
    const reconnects: { reason: string; delayMilliseconds: number }[] = [];
    pipeline.on('reconnect', (event) => reconnects.push(event));
    pipeline.start();
    await pipeline.whenStreaming();

    await source.query(`alter role ${user} password 'second-secret'`);
    asked = 0;
    await source.query(
      'select pg_terminate_backend(active_pid) from pg_replication_slots where database = current_database()',
    );
    // Time is real until the third failure in a row; the minute after it is not waited for.
    await waitFor(() => (reconnects.at(-1)?.delayMilliseconds ?? 0) > 5_000, {
      timeout: 15_000,
    });
    const refusals = reconnects.slice(1);
    expect(refusals.map(({ reason }) => reason)).toEqual(
      refusals.map(() => 'server error 28P01 (invalid_password)'),
    );
    expect(asked).toBe(refusals.length);
    // The lost connection before them is none of the three.
    expect(asked).toBe(3);
    expect(refusals.at(-1)?.delayMilliseconds).toBeGreaterThanOrEqual(60_000);
    const logged = suite.server
      .log()
      .split('password authentication failed for user').length;
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(
      suite.server.log().split('password authentication failed for user'),
    ).toHaveLength(logged);
    expect(pipeline.status()).toMatchObject({
      state: 'reconnecting',
      reason: 'server error 28P01 (invalid_password)',
    });
    const shown = inspect([pipeline.status(), reconnects], { depth: 9 });
    expect(shown).not.toMatch(/-secret/);

    password = 'second-secret';
    await pipeline.stop();
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1]);
  }, 60_000);

  it('that come right in time are taken without a restart of the pipeline (G08)', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const user = await role(source, 'secret');
    let asked = 0;
    const { pipeline } = capture(source, {
      target,
      connection: () => {
        asked += 1;
        return {
          ...source.connection,
          user,
          password: asked < 3 ? 'wrong' : 'secret',
        };
      },
    });
    pipeline.start();
    await pipeline.whenStreaming();
    expect(asked).toBe(3);
  });

  it('that cannot be had are no reason to give up, and what the function threw stays unsaid', async () => {
    const { source, target } = await sourceAndTarget(suite);
    let asked = 0;
    const reasons: string[] = [];
    const { pipeline } = capture(source, {
      target,
      connection: async () => {
        asked += 1;
        if (asked === 1) throw new RangeError('planted-secret');
        return source.connection;
      },
    });
    pipeline.on('reconnect', ({ reason }) => reasons.push(reason));
    pipeline.start();
    await pipeline.whenStreaming();
    expect(reasons).toEqual(['the connection function failed with RangeError']);
  });

  it('are checked by SCRAM, and the stream runs over TLS that the client has verified', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const user = await role(source, 'secret');
    const { pipeline, applied } = capture(source, {
      target,
      connection: {
        ...source.connection,
        user,
        password: 'secret',
        ssl: { ca: suite.server.certificate ?? '' },
        enableChannelBinding: true,
      },
    });
    pipeline.start();
    await pipeline.whenStreaming();
    const rows = await suite.server.query(
      "select ssl from pg_stat_ssl join pg_stat_activity using (pid) where backend_type = 'walsender' and usename = $1",
      [user],
    );
    expect(rows).toEqual([{ ssl: true }]);
    const [verifier] = await suite.server.query<{ scram: boolean }>(
      "select rolpassword like 'SCRAM-SHA-256$%' as scram from pg_authid where rolname = $1",
      [user],
    );
    expect(verifier?.scram).toBe(true);
    await source.query('insert into t select generate_series(1, 20000)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toHaveLength(20_000);
  });
});

describe('a certificate that nobody vouches for', () => {
  it('is refused by default', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline } = capture(source, {
      target,
      connection: { ...source.connection, ssl: true },
    });
    pipeline.start();
    await waitFor(() => pipeline.status().attempt >= 1);
    expect(pipeline.reason).toBe(
      'connection lost (DEPTH_ZERO_SELF_SIGNED_CERT)',
    );
  });

  it('is accepted with rejectUnauthorized: false', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline, applied } = capture(source, {
      target,
      connection: { ...source.connection, ssl: { rejectUnauthorized: false } },
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1]);
  });
});
