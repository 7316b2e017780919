import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ConnectionFault } from '../model/connection-fault.js';
import { deferred } from '../model/deferred.js';
import { HaltError } from '../model/halt.js';
import { SnapshotRefusedError } from '../model/snapshot-refused-error.js';
import { BackfillEndedError } from '../snapshot/incremental/backfill-ended-error.js';
import { copyTables } from './asked-snapshot.js';
import { HandlerScope } from './handlers.js';
import { PipelineStateError } from './state-error.js';

/** Connections of which each ends with one of the outcomes, and whom they tell. */
function asking(...outcomes: (Error | Promise<void>)[]) {
  const warnings: string[] = [];
  const waited: string[] = [];
  const scope = new HandlerScope();
  const copy = (): Promise<void> =>
    copyTables(['public.t'], {
      connection: () => ({
        snapshot: async () => {
          const outcome = outcomes.shift();
          if (outcome instanceof Error) throw outcome;
          await outcome;
        },
      }),
      nextConnection: async () => void waited.push('next'),
      handler: scope.current,
      warning: (message) => warnings.push(message),
    });
  return { copy, warnings, waited, scope };
}

describe('copyTables', () => {
  it('goes on with the next connection when one ends', async () => {
    const { copy, waited } = asking(
      new BackfillEndedError(),
      new BackfillEndedError(),
    );
    await copy();
    expect(waited).toEqual(['next', 'next']);
  });

  it('says of what cannot be copied what to do, and that nothing halted', async () => {
    const { copy, waited } = asking(
      new HaltError('preflight/select_privilege', {
        detail: 'the role r may not read public.t; run: GRANT …',
      }),
    );
    await expect(copy()).rejects.toEqual(
      new SnapshotRefusedError(
        'Nothing was copied: the role r may not read public.t; run: GRANT …. Then call snapshot() again; the pipeline has gone on streaming.',
      ),
    );
    expect(waited).toEqual([]);
  });

  it('tells of an error of the server no more than its class, and waits for no other connection', async () => {
    const refused = Object.assign(new Error('of a Secret'), {
      severity: 'FATAL',
      code: '53300',
    });
    const { copy, waited } = asking(refused);
    await expect(copy()).rejects.toEqual(
      new ConnectionFault('server error 53300 (too_many_connections)'),
    );
    expect(waited).toEqual([]);
  });

  it('leaves other refusals as they are', async () => {
    for (const error of [
      new SnapshotRefusedError('not published'),
      new PipelineStateError('does not stream'),
    ])
      await expect(asking(error).copy()).rejects.toBe(error);
  });
});

describe('a handler that asks', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('is warned of while it waits for itself', async () => {
    const done = deferred<void>();
    const { copy, warnings, scope } = asking(done.promise);
    const handling = scope.run(copy);
    await vi.advanceTimersByTimeAsync(9_000);
    expect(warnings).toEqual([]);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(warnings).toEqual([
      'a handler of the sink has called pipeline.snapshot() and has not ended for 10 s: if it awaits that, it waits for itself',
    ]);
    done.resolve();
    await handling;
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is not warned of when it goes on, and nobody is who is no handler', async () => {
    const done = deferred<void>();
    const { copy, warnings, scope } = asking(done.promise, done.promise);
    const copies: Promise<void>[] = [];
    await scope.run(async () => void copies.push(copy()));
    copies.push(copy());
    await vi.advanceTimersByTimeAsync(20_000);
    expect(warnings).toEqual([]);
    done.resolve();
    await Promise.all(copies);
    expect(vi.getTimerCount()).toBe(0);
  });
});
