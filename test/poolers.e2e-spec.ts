import { describe, expect, it } from 'vitest';
import { capture, inserted } from './support/capture.js';
import { haltedFor, slotAndCheckpoint } from './support/halted.js';
import { startPooler } from './support/pooler.js';
import { sourceAndTarget } from './support/source-and-target.js';
import { useServer } from './support/suite.js';
import { waitFor } from './support/wait-for.js';

const suite = useServer();

describe('a pooler between pipeline and server (U03)', () => {
  it.each([
    [
      'that refuses replication',
      'refuses',
      'ordinary sessions are admitted, replication is refused with 08P01',
    ],
    [
      'that drops the parameter',
      'drops',
      'replication was asked for, and an ordinary session was given',
    ],
    [
      'in transaction mode',
      'shares',
      'several sessions are given the same server process',
    ],
  ] as const)('%s halts, and nothing is created', async (_, kind, detail) => {
    const { source, target } = await sourceAndTarget(suite);
    let place = await startPooler(source.connection, kind);
    const { pipeline, applied } = capture(source, {
      target,
      connection: () => place,
    });
    for (let round = 0; round < 2; round++) {
      pipeline.start();
      const halt = await haltedFor(pipeline, 'preflight/pooler');
      expect(halt.detail).toBe(detail);
      expect(await slotAndCheckpoint(source, target)).toEqual({
        slots: [],
        checkpoints: [],
      });
    }
    place = source.connection;
    pipeline.start();
    await pipeline.whenStreaming();
    await source.query('insert into t values (1)');
    await pipeline.caughtUp();
    expect(inserted(applied, 'id')).toEqual([1]);
  });

  it('that is down is waited for, although it answers with a code of its own', async () => {
    const { source, target } = await sourceAndTarget(suite);
    let asked = 0;
    const refusing = await startPooler(source.connection, 'refuses');
    const { pipeline } = capture(source, {
      target,
      // The ordinary session, asked for next, finds nobody.
      connection: () => ({
        ...refusing,
        port: (asked += 1) % 2 === 1 ? refusing.port : 1,
      }),
    });
    pipeline.start();
    await waitFor(() => pipeline.status().attempt >= 2);
    expect(pipeline.halt).toBeNull();
    expect(pipeline.reason).toBe('connection lost (ECONNREFUSED)');
  });
});

it('a proxy that only announces process ids of its own is no matter', async () => {
  const { source, target } = await sourceAndTarget(suite);
  const { pipeline, applied } = capture(source, {
    target,
    connection: { ...(await startPooler(source.connection, 'relabels')) },
  });
  pipeline.start();
  await pipeline.whenStreaming();
  await source.query('insert into t values (1)');
  await pipeline.caughtUp();
  expect(inserted(applied, 'id')).toEqual([1]);
});
