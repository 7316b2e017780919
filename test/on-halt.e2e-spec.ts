import { describe, expect, it } from 'vitest';
import { Mirrored, NO_FAULTS } from './support/mirrored.js';
import { useServer } from './support/suite.js';
import type { TestApplication } from './support/test-application.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '2s' } });
const TABLE = 'create table t(id int primary key, v text)';

/** Makes the next transaction fail, and the application halt. */
async function halting(
  mirrored: Mirrored,
  env: Readonly<Record<string, string>>,
): Promise<TestApplication> {
  const application = await mirrored.started(env);
  await mirrored.target.query('alter table t add constraint no check (id < 0)');
  await mirrored.source.query("insert into t values (1, 'a')");
  await application.writes('halted at');
  return application;
}

describe("onHalt: 'exit'", () => {
  it('runs the shutdown hooks and ends with code 1; the next start brings the transaction', async () => {
    const mirrored = await Mirrored.create(suite, TABLE);
    const application = await halting(mirrored, { ON_HALT: 'exit' });
    expect(await application.ended()).toEqual({ code: 1, signal: null });
    await application.writes('target closed');

    await mirrored.target.query('alter table t drop constraint no');
    await mirrored.started({ ON_HALT: 'exit' });
    await mirrored.caughtUp();
    expect(await mirrored.faults()).toEqual(NO_FAULTS);
  });

  it('ends at once with code 1 without shutdown hooks', async () => {
    const mirrored = await Mirrored.create(suite, TABLE);
    const application = await halting(mirrored, {
      ON_HALT: 'exit',
      SHUTDOWN_HOOKS: 'off',
      DRAIN_TIMEOUT: '600000',
    });
    expect(await application.ended()).toEqual({ code: 1, signal: null });
    await application.writes('target open');
  });

  it('ends after drainTimeout when somebody else holds SIGTERM back', async () => {
    const mirrored = await Mirrored.create(suite, TABLE);
    const application = await halting(mirrored, {
      ON_HALT: 'exit',
      SHUTDOWN_HOOKS: 'off',
      IGNORE_SIGTERM: 'on',
      DRAIN_TIMEOUT: '500',
    });
    expect(await application.ended()).toEqual({ code: 1, signal: null });
    await application.writes('target open');
  });

  it('ends with code 1 when the application cannot start', async () => {
    const mirrored = await Mirrored.create(suite, TABLE);
    await mirrored.source.query('drop publication p');
    const application = mirrored.start({ ON_HALT: 'exit' });
    expect(await application.ended()).toEqual({ code: 1, signal: null });
    expect(application.output).toContain('publication/missing');
  });
});

describe("onHalt: 'stay'", () => {
  it('keeps a process that has nothing else to do, until it is closed', async () => {
    const mirrored = await Mirrored.create(suite, TABLE);
    const application = await halting(mirrored, {
      ON_HALT: 'stay',
      IDLE_TIMEOUT: '100',
    });
    await waitFor(() => application.said.includes('target idle'), {
      message: 'the last other handle to be closed',
    });
    application.close();
    expect(await application.ended()).toEqual({ code: 0, signal: null });
    await application.writes('target closed');
  });
});
