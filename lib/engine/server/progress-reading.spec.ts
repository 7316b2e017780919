import { describe, expect, it } from 'vitest';
import { MemoryKeeper } from '../../../test/support/keeper.js';
import { ConnectionFault } from '../model/connection-fault.js';
import { HaltError } from '../model/halt.js';
import {
  prepareProgress,
  readProgress,
  type ProgressSource,
} from './progress-reading.js';

const CONTEXT = {
  pipeline: 'orders',
  slotName: 'orders',
  systemIdentifier: '7000000000000000001',
  timeline: 1,
};
const NOTHING = { commitLsn: null, confirmedLsn: null };
const READER = { kind: 'reader', read: async () => null } as const;

function asking(snapshotProgress: () => unknown): ProgressSource {
  return { checkpoint: READER, snapshotProgress };
}

/** What went wrong. */
async function failureOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => expect.unreachable(),
    (error: unknown) => error,
  );
}

describe('readProgress', () => {
  it('takes what was stored with the checkpoint', async () => {
    const sink: ProgressSource = {
      checkpoint: { kind: 'keeper', keeper: new MemoryKeeper() },
    };
    const read = (progress?: string | null): Promise<string | null> =>
      readProgress(
        sink,
        CONTEXT,
        progress === undefined ? NOTHING : { ...NOTHING, progress },
      );
    expect(await read('t')).toBe('t');
    expect(await read(null)).toBeNull();
    expect(await read()).toBeNull();
  });

  it('asks the method of a sink that has one, whatever is stored with the checkpoint', async () => {
    const asked: unknown[] = [];
    const sink: ProgressSource = {
      checkpoint: { kind: 'keeper', keeper: new MemoryKeeper() },
      async snapshotProgress(context) {
        asked.push(context);
        return 'own';
      },
    };
    const position = { ...NOTHING, progress: 'other' };
    expect(await readProgress(sink, CONTEXT, position)).toBe('own');
    expect(asked).toEqual([CONTEXT]);
    const none = asking(async () => null);
    expect(await readProgress(none, CONTEXT, NOTHING)).toBeNull();
  });

  it.each([[undefined], [7], [true], [{ secret: 1 }], [Buffer.from('secret')]])(
    'halts on %o, which is neither a text nor null',
    async (answer) => {
      const failure = await failureOf(
        readProgress(
          asking(async () => answer),
          CONTEXT,
          NOTHING,
        ),
      );
      expect(failure).toBeInstanceOf(HaltError);
      expect(failure).toMatchObject({
        halt: {
          code: 'snapshot_progress_invalid',
          detail: `the @SnapshotProgress() method returned ${typeof answer}`,
        },
      });
    },
  );

  it.each([
    ['rejects', () => Promise.reject(new RangeError('secret'))],
    [
      'throws',
      () => {
        throw new RangeError('secret');
      },
    ],
  ])('is tried again when the method %s', async (_, method) => {
    const failure = await failureOf(
      readProgress(asking(method), CONTEXT, NOTHING),
    );
    expect(failure).toBeInstanceOf(ConnectionFault);
    expect(failure).toMatchObject({
      message: 'the progress of the snapshot is not available (RangeError)',
    });
  });
});

describe('prepareProgress', () => {
  it('lets a keeper make room, unless the sink stores progress by itself', async () => {
    class Prepared extends MemoryKeeper {
      times = 0;

      async prepareProgress(): Promise<void> {
        this.times += 1;
      }
    }
    const keeper = new Prepared();
    const sink: ProgressSource = { checkpoint: { kind: 'keeper', keeper } };
    await prepareProgress(sink);
    expect(keeper.times).toBe(1);
    await prepareProgress({ ...sink, snapshotProgress: async () => null });
    expect(keeper.times).toBe(1);
  });

  it('needs nothing of a keeper that has no such method, nor of a reader', async () => {
    const keeper = new MemoryKeeper();
    await prepareProgress({ checkpoint: { kind: 'keeper', keeper } });
    await prepareProgress({ checkpoint: READER });
  });

  it('is tried again when it fails, and passes a halt on', async () => {
    class Failing extends MemoryKeeper {
      constructor(private readonly error: Error) {
        super();
      }

      async prepareProgress(): Promise<void> {
        throw this.error;
      }
    }
    const prepared = (error: Error): Promise<unknown> =>
      failureOf(
        prepareProgress({
          checkpoint: { kind: 'keeper', keeper: new Failing(error) },
        }),
      );
    expect(await prepared(new RangeError('secret'))).toMatchObject({
      name: 'ConnectionFault',
      message: 'the checkpoint is not available (RangeError)',
    });
    const halt = new HaltError('checkpoint/progress_column', { detail: 'sql' });
    expect(await prepared(halt)).toBe(halt);
  });
});
