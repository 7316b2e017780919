import { describe, expect, it, onTestFinished } from 'vitest';
import { capture, inserted } from './support/capture.js';
import { readSlot } from './support/logical-slot.js';
import { useServer } from './support/suite.js';
import { TcpProxy } from './support/tcp-proxy.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer();

async function databases(): Promise<{
  source: TestDatabase;
  target: TestDatabase;
}> {
  const source = await suite.database();
  const target = await suite.database('target');
  await source.query(
    `create type mood as enum ('sad', 'happy');
     create table t(id int primary key, moods mood[]);
     create publication p for table t`,
  );
  return { source, target };
}

/** A way to the source that resets the look-up in the catalog so many times, and counts all of them. */
async function lookups(
  failures: number,
): Promise<{ port: number; count: () => number }> {
  const proxy = await TcpProxy.start(suite.server.connection);
  onTestFinished(() => proxy.close());
  let count = 0;
  proxy.tap = (bytes, direction) => {
    if (direction !== 'client-to-server' || !bytes.includes('typbasetype'))
      return;
    count += 1;
    if (count <= failures) proxy.reset();
  };
  return { port: proxy.port, count: () => count };
}

describe('a look-up of types', () => {
  it('is made once, while frames keep coming, and every value is right and in order', async () => {
    const { source, target } = await databases();
    const { port, count } = await lookups(0);
    const { pipeline, applied } = capture(source, {
      target,
      connection: { ...source.connection, port },
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query(
      `do $$ begin for i in 1..2000 loop
         insert into t values (i, array['sad', 'happy']::mood[]); commit; end loop; end $$`,
    );
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual(
      Array.from({ length: 2_000 }, (_, index) => index + 1),
    );
    expect(new Set(inserted(applied, 'moods').map(String))).toEqual(
      new Set(['sad,happy']),
    );
    expect(inserted(applied, 'moods').every(Array.isArray)).toBe(true);
    expect(count()).toBe(1);
  });

  it('asks for all types of a table at once', async () => {
    const { source, target } = await databases();
    const count = 40;
    const names = Array.from({ length: count }, (_, index) => `kind${index}`);
    for (const name of names)
      await source.query(`create type ${name} as enum ('a', 'b,c', '"d"')`);
    await source.query(
      `create table many(id int primary key, ${names.map((name) => `c_${name} ${name}[]`).join(', ')});
       alter publication p add table many`,
    );
    const watched = await lookups(0);
    const { pipeline, applied } = capture(source, {
      target,
      connection: { ...source.connection, port: watched.port },
    });
    pipeline.start();
    await pipeline.whenStreaming();
    const value = `array['a', 'b,c', '"d"', null]`;
    await source.query(
      `insert into many values (1, ${names.map((name) => `${value}::${name}[]`).join(', ')})`,
    );
    await pipeline.caughtUp();
    for (const name of names) {
      expect(inserted(applied, `c_${name}`)).toEqual([
        ['a', 'b,c', '"d"', null],
      ]);
    }
    expect(watched.count()).toBe(1);
  });

  it('of a type that is gone gives text, and the stream goes on', async () => {
    const { source, target } = await databases();
    const { pipeline, applied } = capture(source, { target });
    pipeline.start();
    await pipeline.whenStreaming();
    await pipeline.stop();
    await source.query("insert into t values (1, '{sad}')");
    await source.query('drop table t; drop type mood');
    await source.query(
      'create table u(id int primary key); alter publication p add table u',
    );
    await source.query('insert into u values (2)');
    pipeline.start();
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1, 2]);
    expect(inserted(applied, 'moods')).toContain('{sad}');
  });

  it('that loses its connection is a lost connection: the transaction comes again', async () => {
    const { source, target } = await databases();
    const { port, count } = await lookups(2);
    const { pipeline, applied, calls } = capture(source, {
      target,
      connection: { ...source.connection, port },
    });
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query("insert into t values (1, '{sad}')");
    await source.query("insert into t values (2, '{happy}')");
    await waitFor(() => applied.length === 2, { timeout: 20_000 });
    expect(inserted(calls, 'id')).toEqual([1, 2]);
    expect(inserted(applied, 'moods')).toEqual([['sad'], ['happy']]);
    expect(count()).toBe(3);
    expect(pipeline.halt).toBeNull();
  });

  it('in vain confirms nothing, and the pipeline stops while it is made', async () => {
    const { source, target } = await databases();
    const proxy = await TcpProxy.start(suite.server.connection);
    onTestFinished(() => proxy.close());
    const { pipeline, applied } = capture(source, {
      target,
      connection: { ...source.connection, port: proxy.port },
    });
    pipeline.start();
    await pipeline.whenStreaming();
    const seen = proxy.accepted;
    let held = 0;
    proxy.tap = (bytes, direction, number) => {
      if (number <= seen || direction !== 'client-to-server') return;
      if (!bytes.includes('typbasetype')) return;
      held += 1;
      proxy.halfOpen('server-to-client');
    };
    await source.query("insert into t values (1, '{sad}')");
    await waitFor(() => held === 1);
    const began = performance.now();
    await pipeline.stop();
    expect(performance.now() - began).toBeLessThan(5_000);
    expect(applied).toEqual([]);
    proxy.tap = null;
    proxy.reset();
    proxy.restore();
    await waitFor(
      async () =>
        (await readSlot(suite.server, pipeline.options.slotName))?.active ===
        false,
    );
    pipeline.start();
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1]);
  });
});
