import { describe, expect, it, onTestFinished } from 'vitest';
import { capture, inserted } from '../support/capture.js';
import { haltedFor } from '../support/halted.js';
import { noPluginServer, usePluginServer } from '../support/plugin-suite.js';
import { sourceAndTarget } from '../support/source-and-target.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { waitFor } from '../support/wait-for.js';

const TABLE = 'create table t(id int primary key, v text)';
const INTERVAL = 200;

describe.skipIf(noPluginServer)('the look at the catalog', () => {
  const suite = usePluginServer();

  it('is taken as often after many connections as after one (13.9 no. 82)', async () => {
    const { source, target } = await sourceAndTarget(suite, TABLE);
    const proxy = await TcpProxy.start(suite.server.connection);
    onTestFinished(() => proxy.close());
    const { host, port } = proxy;
    let connections = 0;
    const { pipeline, applied } = capture(source, {
      target,
      decoder: 'wal2json',
      tables: [['public', 't']],
      schemaCheckInterval: INTERVAL,
      connection: () => {
        connections += 1;
        return { ...source.connection, host, port };
      },
    });
    pipeline.start();
    await pipeline.whenStreaming();
    for (let id = 1; id <= 6; id++) {
      proxy.reset();
      await source.query('insert into t values ($1)', [id]);
      await waitFor(() => inserted(applied, 'id').includes(id));
    }
    const looks = 5;
    const before = connections;
    const start = performance.now();
    await waitFor(() => connections >= before + looks);
    expect(performance.now() - start).toBeGreaterThan((looks - 1) * INTERVAL);
    expect(pipeline.halt).toBeNull();
  });

  it.each([
    [
      'renamed',
      'alter table t rename to u',
      'insert into u values (2)',
      'alter table u rename to t',
    ],
    [
      'in another schema',
      'create schema s; alter table t set schema s',
      'insert into s.t values (2)',
      'alter table s.t set schema public',
    ],
    ['dropped', 'drop table t', 'create table x()', TABLE],
  ])(
    'finds that a table is %s, of which the plugin then sends nothing',
    async (_, ddl, next, back) => {
      const { source, target } = await sourceAndTarget(suite, TABLE);
      const { pipeline, applied } = capture(source, {
        target,
        decoder: 'wal2json',
        tables: [['public', 't']],
        schemaCheckInterval: INTERVAL,
        schemaChange: async () => {},
      });
      pipeline.start();
      await pipeline.whenStreaming();
      await source.query(`insert into t values (1)`);
      await source.query(ddl);
      await source.query(next);
      await source.query('create table noise(id int)');
      await waitFor(async () => {
        await source.query('insert into noise values (1)');
        return pipeline.halt;
      });
      const halt = await haltedFor(pipeline, 'decoder/table_missing');
      expect(halt.detail).toBe('public.t does not exist');
      expect(inserted(applied, 'id')).toEqual([1]);
      await source.query(back);
      pipeline.start();
      await source.query('insert into t values (3)');
      await pipeline.caughtUp();
      expect(inserted(applied, 'id')).toEqual([1, 3]);
    },
  );

  it('is taken again when it has failed, and no failure ends the stream', async () => {
    const { source, target } = await sourceAndTarget(suite, TABLE);
    let failures = 0;
    let failing = false;
    const { pipeline, applied } = capture(source, {
      target,
      decoder: 'wal2json',
      tables: [['public', 't']],
      schemaCheckInterval: INTERVAL,
      connection: () => {
        if (!failing) return source.connection;
        failures += 1;
        throw new Error('no connection');
      },
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query(`insert into t values (1, 'a')`);
    await pipeline.caughtUp();
    failing = true;
    await waitFor(() => failures >= 3);
    await source.query(`insert into t values (2, 'b')`);
    await waitFor(() => applied.length === 2);
    expect(inserted(applied, 'id')).toEqual([1, 2]);
    expect(pipeline.state).toBe('streaming');
    await source.query('alter table t drop v');
    failing = false;
    await waitFor(async () => {
      await source.query('update t set id = id + 10');
      return pipeline.halt;
    });
    await haltedFor(pipeline, 'schema_change/destructive');
  });
});
