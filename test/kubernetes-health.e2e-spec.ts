import { describe, expect, it } from 'vitest';
import { DRAIN_TIMEOUT_MS } from '../sample/02-kubernetes-health/application/settings.js';
import { at } from './support/manifest.js';
import {
  container,
  manifest,
  Pod,
  podSpec,
  PROBES,
} from './support/sample-pod.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

const POSITIVE: unknown = expect.toSatisfy((value: number) => value > 0);
const TABLE = 'create table stock(sku text primary key, pieces int not null)';

describe('the manifest of the sample', () => {
  it('asks at the port where the application listens', () => {
    const port = at(container, 'ports', 0);
    for (const probe of PROBES)
      expect(at(container, probe, 'httpGet', 'port')).toBe(at(port, 'name'));
    expect(at(container, 'env', 0)).toEqual({
      name: 'PORT',
      value: at(port, 'containerPort'),
    });
  });

  it('grants more time than a stop takes', () => {
    const seconds = Number(at(podSpec, 'terminationGracePeriodSeconds'));
    expect(seconds * 1_000).toBeGreaterThanOrEqual(DRAIN_TIMEOUT_MS + 5_000);
  });

  it('lets one pod go before the next one comes, since both want the slot', () => {
    expect(at(manifest, 'spec', 'replicas')).toBe('1');
    expect(at(manifest, 'spec', 'strategy', 'type')).toBe('Recreate');
  });
});

describe('the application of the sample', () => {
  const suite = useServer();
  const home = useServer();

  it('goes through start, outage, halt, recovery and shutdown (W02, G07)', async () => {
    const source = await suite.database();
    const target = await home.database('target');
    await source.query(
      `${TABLE}; insert into stock values ('nut', 3); create publication stock_pub for table stock`,
    );
    await target.query(TABLE);
    const held = await target.connect();
    await held.query('begin; lock table stock');
    await suite.server.stop('fast');

    const pod = await Pod.start(source, target);
    await pod.answers([503, 200, 503]);
    await pod.reports({ state: 'connecting', conditions: ['connecting'] });

    await suite.server.startAgain();
    // It copies the row that exists, and the sink cannot write it yet.
    await pod.reports({
      state: 'snapshotting',
      health: 'degraded',
      conditions: ['snapshotting'],
      snapshot: { mode: 'initial', state: 'copying', rows: 0, tablesTotal: 1 },
      handler: { runningMilliseconds: POSITIVE },
    });
    await pod.answers([200, 200, 200]);
    await held.query('rollback');
    await pod.reports({
      state: 'streaming',
      health: 'up',
      conditions: ['streaming'],
      snapshot: { state: 'complete', tablesDone: 1, rows: 1 },
      neverCopied: { count: 0, tables: [] },
    });
    await source.query("insert into stock values ('bolt', 7)");
    await waitFor(async () => (await pieces(target)) === 7);
    await pod.reports({
      state: 'streaming',
      role: 'active',
      connected: true,
      slot: { state: 'present', active: true, walStatus: 'reserved' },
    });

    await suite.server.stop('immediate');
    await pod.reports({
      state: 'reconnecting',
      health: 'degraded',
      connected: false,
    });
    // For the time of a fail-over that is no reason to take it out, and never one to restart it.
    expect(await pod.codes()).toEqual([200, 200, 200]);
    await suite.server.startAgain();
    await pod.reports({ state: 'streaming', health: 'up' });

    await target.query('alter table stock rename to mislaid');
    await source.query("update stock set pieces = 8 where sku = 'bolt'");
    await pod.answers([200, 200, 503]);
    await pod.reports({
      state: 'halted',
      health: 'down',
      halt: { code: 'sink_failed' },
      slot: { state: 'present', active: false },
      lag: { bytes: POSITIVE, milliseconds: POSITIVE },
    });

    await target.query('alter table mislaid rename to stock');
    expect(await pod.post('/repair/start')).toBe(202);
    await pod.answers([200, 200, 200]);
    await waitFor(async () => (await pieces(target)) === 8);

    const lock = await target.connect();
    await lock.query('begin; lock table stock');
    await source.query("update stock set pieces = 9 where sku = 'bolt'");
    await pod.reports({ handler: { runningMilliseconds: POSITIVE } });
    pod.application.signal('SIGTERM');
    await pod.reports({ state: 'draining', health: 'down' });
    await pod.answers([200, 200, 503]);
    await lock.query('rollback');
    expect(await pod.application.ended()).toMatchObject({ signal: 'SIGTERM' });
    expect(await pieces(target)).toBe(9);
  }, 120_000);
});

async function pieces(target: TestDatabase): Promise<number | undefined> {
  const [row] = await target.query<{ pieces: number }>(
    "select pieces from stock where sku = 'bolt'",
  );
  return row?.pieces;
}
