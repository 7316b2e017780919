import { describe, expect, it, onTestFinished } from 'vitest';
import { capture, inserted } from './support/capture.js';
import { haltedFor, slotAndCheckpoint } from './support/halted.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer();
const elsewhere = useServer();

/** Sets it, and waits until new sessions see it. */
async function lettingCommitsWaitFor(names: string): Promise<void> {
  onTestFinished(() => set(''));
  await set(names);
}

async function set(names: string): Promise<void> {
  await suite.server.query(
    `alter system set synchronous_standby_names = '${names}'`,
  );
  await suite.server.query('select pg_reload_conf()');
  await waitFor(async () => {
    const [row] = await suite.server.query<{ names: string }>(
      "select current_setting('synchronous_standby_names') as names",
    );
    return row?.names === names;
  });
}

describe('a commit of the sink that would wait for the pipeline', () => {
  it.each(['*', 'FIRST 1 (s1, "NestJS-Replicant test")'])(
    'halts while synchronous_standby_names is %s',
    async (names) => {
      const { source, target } = await sourceAndTarget(suite);
      const { pipeline, applied } = capture(source, { target });
      // A table that exists needs no commit to be found.
      pipeline.start();
      await pipeline.whenStreaming();
      await pipeline.stop();
      await lettingCommitsWaitFor(names);
      const before = await slotAndCheckpoint(source, target);
      for (let round = 0; round < 2; round++) {
        pipeline.start();
        const halt = await haltedFor(pipeline, 'preflight/synchronous_standby');
        expect(halt.detail).toContain('"nestjs-replicant test"');
        expect(await slotAndCheckpoint(source, target)).toEqual(before);
      }
      await set('ANY 1 ("nestjs-replicant other")');
      pipeline.start();
      await pipeline.whenStreaming();
      await set('');
      await source.query('insert into t values (1)');
      await pipeline.caughtUp();
      expect(inserted(applied, 'id')).toEqual([1]);
    },
  );
});

it('a commit of the source that waits for a sink elsewhere is worth a warning', async () => {
  const source = await suite.database();
  const target = await elsewhere.database('target');
  await source.query(
    'create table t(id int primary key); create publication p for table t',
  );
  await lettingCommitsWaitFor('*');
  const { pipeline, applied } = capture(source, { target });
  const warnings: string[] = [];
  pipeline.on('warning', ({ message }) => warnings.push(message));
  pipeline.start();
  await pipeline.whenStreaming();
  expect(warnings).toEqual([
    expect.stringContaining('the application name "nestjs-replicant test"'),
  ]);
  // The commit returns when the sink elsewhere has written the row.
  await source.query('insert into t values (1)');
  expect(inserted(applied, 'id')).toEqual([1]);
});
