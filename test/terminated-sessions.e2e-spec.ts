import { describe, expect, it, onTestFinished } from 'vitest';
import { capture, inserted } from './support/capture.js';
import {
  catchAt,
  clientSends,
  type Moment,
  serverAnswers,
  serverSends,
} from './support/catch-at.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import { TcpProxy } from './support/tcp-proxy.js';
import type { TestDatabase } from './support/test-database.js';
import { deferred } from './support/wait-for.js';

const suite = useServer({ settings: { wal_sender_timeout: '4s' } });
const SCHEMA = `create type mood as enum ('sad', 'ok');
  create table t(id int primary key, moods mood[]); create publication p for table t`;

/** A role of its own tells the sessions of the pipeline from those of the test. */
async function createRole(source: TestDatabase): Promise<string> {
  const role = `role_${source.name}`;
  await source.query(`create role ${role} login replication password 'r'`);
  onTestFinished(
    async () => void (await suite.server.query(`drop role ${role}`)),
  );
  return role;
}

describe('a pipeline whose sessions are all terminated', () => {
  it.each<[string, () => Moment]>([
    ['it has logged in', () => serverSends('server_version')],
    ['it asks who the server is', () => clientSends('IDENTIFY_SYSTEM')],
    ['it asks for its publication', () => clientSends('pg_publication')],
    ['it creates its slot', () => clientSends('CREATE_REPLICATION_SLOT')],
    ['its stream has begun', () => serverAnswers('START_REPLICATION')],
    ['it looks up a type', () => clientSends('pg_type')],
  ])(
    'when %s reconnects once, and each row arrives once (G01)',
    async (_when, moment) => {
      const { source, target } = await sourceAndTarget(suite, SCHEMA);
      const role = await createRole(source);
      const proxy = await TcpProxy.start(suite.server.connection);
      onTestFinished(() => proxy.close());
      const { pipeline, applied } = capture(source, {
        target,
        connection: {
          ...source.connection,
          user: role,
          password: 'r',
          port: proxy.port,
        },
      });
      const reconnects: number[] = [];
      pipeline.on('reconnect', ({ attempt }) => reconnects.push(attempt));
      const written = deferred();
      const write = async (): Promise<void> => {
        await source.query(`insert into t values (1, '{ok}')`);
        written.resolve();
      };
      pipeline.on('state', ({ from, to }) => {
        if (from === 'connecting' && to === 'streaming') void write();
      });
      const caught = catchAt(proxy, moment());
      pipeline.start();
      await caught;
      await source.query(
        'select pg_terminate_backend(pid, 5000) from pg_stat_activity where usename = $1',
        [role],
      );
      proxy.restore();
      await pipeline.whenStreaming();
      await written.promise;
      await source.query(`insert into t values (2, '{sad,NULL}')`);
      await pipeline.caughtUp();
      expect(inserted(applied, 'moods')).toEqual([['ok'], ['sad', null]]);
      expect(reconnects).toEqual([1]);
      expect(pipeline.halt).toBeNull();
    },
  );
});
