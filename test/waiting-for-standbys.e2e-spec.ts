import { expect, it, onTestFinished } from 'vitest';
import { capture, inserted } from './support/capture.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '2s' } });
const FIRST_WITH_FAILOVER = 17;
const STANDBY_SLOT = 'of_a_standby_that_is_away';

async function waitForStandbys(
  source: TestDatabase,
  slots: string,
): Promise<void> {
  await source.query(
    `alter system set synchronized_standby_slots = '${slots}'`,
  );
  await source.query('select pg_reload_conf()');
}

it('a server that waits for a standby is told from a consumer that lags (J05)', async () => {
  const { source, target } = await sourceAndTarget(suite);
  if (suite.server.majorVersion < FIRST_WITH_FAILOVER) {
    await expect(waitForStandbys(source, STANDBY_SLOT)).rejects.toThrow(
      'unrecognized configuration parameter',
    );
    return;
  }
  await suite.server.query('select pg_create_physical_replication_slot($1)', [
    STANDBY_SLOT,
  ]);
  onTestFinished(async () => {
    await suite.server.query('select pg_drop_replication_slot($1)', [
      STANDBY_SLOT,
    ]);
  });
  const { pipeline, applied } = capture(source, {
    target,
    failover: true,
    health: { cacheFor: 1 },
  });
  const warnings: string[] = [];
  pipeline.on('warning', ({ message }) => warnings.push(message));
  pipeline.start();
  await pipeline.whenStreaming();
  const waits = async (): Promise<boolean | undefined> => {
    await pipeline.checkSlot();
    return pipeline.status().slot?.waitsForStandby ?? undefined;
  };
  expect(await waits()).toBe(false);

  await waitForStandbys(source, STANDBY_SLOT);
  await source.query('insert into t values (1)');
  await waitFor(waits, { message: 'the server to wait' });
  expect(applied).toEqual([]);
  // Its SQLSTATE is also that of a publication that is missing; the server repeats it as long as it waits.
  expect(pipeline.state).toBe('streaming');
  expect(warnings).toEqual([expect.stringContaining('SQLSTATE 55000')]);

  await waitForStandbys(source, '');
  await waitFor(() => applied.length === 1, { message: 'the row' });
  expect(inserted(applied, 'id')).toEqual([1]);
  await waitFor(async () => (await waits()) === false, {
    message: 'the server to wait no longer',
  });
});
