import { networkInterfaces } from 'node:os';
import { inspect } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { ConnectionOption } from '../lib/engine/options/pipeline-options.js';
import { capture, inserted } from './support/capture.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import type { TestDatabase } from './support/test-database.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer({ settings: { listen_addresses: '127.0.0.1, ::1' } });

const USER = 'we ird@user';
const PASSWORD = 'p@s:s/w%20?#';

function encodedUrl(source: TestDatabase, host: string): string {
  const { port, database } = source.connection;
  const [user, password] = [USER, PASSWORD].map(encodeURIComponent);
  return `postgresql://${user}:${password}@${host}:${port}/${database}`;
}

describe('a name and a password with special characters (U01)', () => {
  const forms: [string, (source: TestDatabase) => ConnectionOption][] = [
    ['an encoded string', (source) => encodedUrl(source, '127.0.0.1')],
    [
      'settings',
      (source) => ({ ...source.connection, user: USER, password: PASSWORD }),
    ],
    [
      'an encoded string of a Unix socket',
      (source) =>
        encodedUrl(
          source,
          encodeURIComponent(suite.server.socketFolder ?? '127.0.0.1'),
        ),
    ],
  ];

  it.each(forms)(
    'work as %s, and are in no status',
    async (_, connectionOf) => {
      const { source, target } = await sourceAndTarget(suite);
      await suite.server.query(
        `create role "${USER}" login replication password '${PASSWORD}'`,
      );
      onTestFinished(async () => {
        await pipeline.stop();
        await suite.server.query(`drop role "${USER}"`);
      });
      const { pipeline, applied } = capture(source, {
        target,
        connection: connectionOf(source),
      });
      pipeline.start();
      await pipeline.whenStreaming();
      await source.query('insert into t values (1)');
      await pipeline.caughtUp();
      expect(inserted(applied, 'id')).toEqual([1]);
      expect(
        inspect([pipeline, pipeline.status()], { depth: 9 }),
      ).not.toContain(PASSWORD);
    },
  );

  it('that are wrong are in no message', async () => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline } = capture(source, {
      target,
      connection: encodedUrl(source, '127.0.0.1'),
    });
    pipeline.start();
    await waitFor(() => pipeline.status().attempt >= 1);
    expect(pipeline.reason).toMatch(/28P01/);
    expect(inspect([pipeline, pipeline.status()], { depth: 9 })).not.toMatch(
      /p@s:s|we ird|p%40s/,
    );
  });
});

describe('an IPv6 address (U01)', () => {
  const hasIpv6 = Object.values(networkInterfaces())
    .flat()
    .some((address) => address?.address === '::1');

  it.each([
    [
      'in a string',
      (source: TestDatabase) => source.url.replace('127.0.0.1', '[::1]'),
    ],
    [
      'in settings',
      (source: TestDatabase) => ({ ...source.connection, host: '::1' }),
    ],
  ])('%s is one place like any other', async (_, connectionOf) => {
    const { source, target } = await sourceAndTarget(suite);
    const { pipeline, applied } = capture(source, {
      target,
      connection: connectionOf(source),
    });
    pipeline.start();
    if (!hasIpv6) {
      await waitFor(() => pipeline.status().attempt >= 1);
      expect(pipeline.reason).toMatch(/^connection lost \(E[A-Z]+\)$/);
      return;
    }
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1]);
  });
});
