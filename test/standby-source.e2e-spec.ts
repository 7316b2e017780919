import { describe, expect, it } from 'vitest';
import type { HaltCode } from '../lib/engine/model/halts.js';
import { capture, inserted, type Capture } from './support/capture.js';
import { haltedFor } from './support/halted.js';
import { PrimaryAndStandby } from './support/standby.js';
import { useServer } from './support/suite.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer();
const FIRST_THAT_DECODES_ON_STANDBYS = 16;
const FIRST_THAT_TELLS_WHY = 17;
const TIMEOUT_MS = 90_000;

/** A pipeline that reads the standby, while its sink writes to a server of its own. */
interface FromStandby {
  readonly servers: PrimaryAndStandby;
  readonly capturing: Capture;
}

async function fromStandby(): Promise<FromStandby> {
  const servers = await PrimaryAndStandby.start();
  const target = await suite.database('target');
  return { servers, capturing: capture(servers.copy, { target }) };
}

/** Streams, and has the row that the primary has inserted. */
async function streaming({ servers, capturing }: FromStandby): Promise<void> {
  const { pipeline, applied } = capturing;
  pipeline.start();
  // A slot on a standby is created when the primary has written what runs there.
  await waitFor(
    async () => {
      await servers.primary.query('select pg_log_standby_snapshot()');
      return pipeline.state === 'streaming';
    },
    { timeout: 30_000, message: 'the slot on the standby' },
  );
  await servers.source.query('insert into t values (1)');
  await waitFor(() => applied.length === 1, {
    message: 'the row of the primary',
  });
}

/** Where standbys cannot decode, the server says so and nothing is created. */
async function isRefused({ servers, capturing }: FromStandby): Promise<void> {
  capturing.pipeline.start();
  await haltedFor(capturing.pipeline, 'command_error/permanent');
  expect(await servers.copy.query('select from pg_replication_slots')).toEqual(
    [],
  );
}

/** Waits until the standby has given up the slot, and sees why the pipeline halts. */
async function lost(
  { servers, capturing }: FromStandby,
  provoke: () => Promise<unknown>,
  code: HaltCode,
): Promise<void> {
  await capturing.pipeline.stop();
  await waitFor(
    async () => {
      await provoke();
      const [slot] = await servers.copy.query<{ conflicting: boolean }>(
        'select conflicting from pg_replication_slots',
      );
      return slot?.conflicting;
    },
    { timeout: 40_000, message: 'the slot to be invalidated' },
  );
  capturing.pipeline.start();
  await haltedFor(
    capturing.pipeline,
    suite.server.majorVersion < FIRST_THAT_TELLS_WHY
      ? 'slot_invalidated/conflict'
      : code,
  );
}

describe('a standby as the source', () => {
  it(
    'is streamed from; a slot that its primary has removed rows of halts',
    async () => {
      const pair = await fromStandby();
      if (suite.server.majorVersion < FIRST_THAT_DECODES_ON_STANDBYS)
        return isRefused(pair);
      await streaming(pair);
      const { primary, source, standby } = pair.servers;
      await standby.query('alter system set hot_standby_feedback = off');
      await standby.query('select pg_reload_conf()');
      await primary.query(
        "select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_type = 'physical' and not active",
      );
      await lost(
        pair,
        async () => {
          // Rows of the catalogs that nobody sees any more.
          await source.query('create table gone(a int)');
          await source.query('drop table gone');
          await source.query('vacuum full pg_catalog.pg_class');
          await source.query('vacuum pg_catalog.pg_attribute');
        },
        'slot_invalidated/rows_removed',
      );
    },
    TIMEOUT_MS,
  );

  it(
    'that is promoted while it streams goes on, also after the next connect',
    async () => {
      const pair = await fromStandby();
      if (suite.server.majorVersion < FIRST_THAT_DECODES_ON_STANDBYS)
        return isRefused(pair);
      await streaming(pair);
      const { servers, capturing } = pair;
      const { pipeline, applied } = capturing;
      await servers.caughtUp();
      await servers.primary.kill();
      await servers.promote();
      await servers.copy.query('insert into t values (2)');
      await waitFor(() => applied.length === 2, { timeout: 20_000 });
      await pipeline.stop();
      pipeline.start();
      await pipeline.whenStreaming();
      await servers.copy.query('insert into t values (3)');
      await waitFor(() => applied.length === 3, { timeout: 20_000 });
      expect(inserted(applied, 'id')).toEqual([1, 2, 3]);
    },
    TIMEOUT_MS,
  );

  it(
    'that was started again is waited for until it has replayed as far as the checkpoint',
    async () => {
      const pair = await fromStandby();
      if (suite.server.majorVersion < FIRST_THAT_DECODES_ON_STANDBYS)
        return isRefused(pair);
      const { standby, primary, source } = pair.servers;
      // What is not written to its disk has to be replayed again.
      await standby.query('alter system set bgwriter_lru_maxpages = 0');
      await standby.query('select pg_reload_conf()');
      await streaming(pair);
      await primary.query('checkpoint');
      await pair.servers.caughtUp();
      await standby.query('checkpoint');
      const { pipeline, applied } = pair.capturing;
      await source.query('insert into t values (2)');
      await waitFor(() => applied.length === 2, { timeout: 20_000 });
      standby.configure({ recovery_min_apply_delay: '1h' });
      await standby.restart('immediate');
      await waitFor(
        () => pipeline.reason?.startsWith('the standby is behind'),
        { timeout: 30_000, message: 'the pipeline to wait' },
      );
      expect(pipeline.state).toBe('reconnecting');
      await standby.query('alter system set recovery_min_apply_delay = 0');
      await standby.query('select pg_reload_conf()');
      await source.query('insert into t values (3)');
      await waitFor(() => applied.length === 3, { timeout: 40_000 });
      expect(inserted(applied, 'id')).toEqual([1, 2, 3]);
    },
    TIMEOUT_MS,
  );

  it(
    'whose primary no longer writes logical WAL halts',
    async () => {
      const pair = await fromStandby();
      if (suite.server.majorVersion < FIRST_THAT_DECODES_ON_STANDBYS)
        return isRefused(pair);
      await streaming(pair);
      const { primary } = pair.servers;
      await primary.stop();
      primary.configure({ wal_level: 'replica' });
      await primary.startAgain();
      await lost(
        pair,
        () => primary.query('checkpoint'),
        'slot_invalidated/wal_level_insufficient',
      );
    },
    TIMEOUT_MS,
  );
});
