import { expect, it } from 'vitest';
import { capture, inserted } from './support/capture.js';
import { haltedFor, slotAndCheckpoint } from './support/halted.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';

const suite = useServer({ settings: { wal_level: 'replica' } });

it('a server that does not write logical WAL halts before anything is created, and goes on after the remedy (U06)', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const { pipeline, applied } = capture(source, { target });
  for (let round = 0; round < 2; round++) {
    pipeline.start();
    const halt = await haltedFor(pipeline, 'preflight/wal_level');
    expect(halt.detail).toBe('wal_level is replica');
    expect(await slotAndCheckpoint(source, target)).toMatchObject({
      slots: [],
      checkpoints: [],
    });
  }
  const remedy = /Run: (.*?;)/.exec(pipeline.halt?.remedy ?? '')?.[1];
  await suite.server.query(remedy ?? '');
  await suite.server.restart();
  pipeline.start();
  await pipeline.whenStreaming();
  await source.query('insert into t values (1)');
  await pipeline.caughtUp();
  expect(inserted(applied, 'id')).toEqual([1]);
});
