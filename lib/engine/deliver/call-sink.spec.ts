import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { CheckpointMovedError } from '../checkpoint/checkpoint-moved-error.js';
import { promiseOf } from '../model/answer.js';
import { ConnectionFault } from '../model/connection-fault.js';
import { HaltError } from '../model/halt.js';
import type { Transaction } from '../model/transaction.js';
import type { AroundDelivery } from '../options/pipeline-options.js';
import { callSink } from './call-sink.js';

const SECRET = 'planted-secret';

const transaction: Transaction = {
  pipeline: 'p',
  slotName: 's',
  xid: 1,
  commitLsn: 10n,
  commitEndLsn: 20n,
  commitTime: new Date(0),
  commitTimeMicros: 0n,
  changes: [],
  messages: [],
};

class DatabaseError extends Error {
  readonly code = '23505';
}

/** Delivers once; gives the halt, if any, and what `around` was reported for. */
async function deliver(
  handler: (transaction: Transaction) => unknown,
  around: AroundDelivery | null = null,
): Promise<{ halt: HaltError['halt'] | null; faults: string[] }> {
  const faults: string[] = [];
  try {
    await callSink(
      {
        delivery: { kind: 'transaction', transaction },
        what: 'a handler of OrderSink',
        lsn: transaction.commitLsn,
        call: () => handler(transaction),
      },
      around,
      (errorClass) => faults.push(errorClass),
    );
    return { halt: null, faults };
  } catch (error) {
    if (error instanceof HaltError) return { halt: error.halt, faults };
    throw error;
  }
}

const succeed = async (): Promise<void> => {};
const fail = async (): Promise<void> => {
  throw new DatabaseError(SECRET);
};

describe('callSink', () => {
  it('resolves when the handler does, whatever the value', async () => {
    expect(await deliver(async () => false)).toEqual({
      halt: null,
      faults: [],
    });
  });

  it('takes any thenable for a promise', async () => {
    let asked = false;
    const query = {
      then(resolve: (value: unknown) => void): void {
        asked = true;
        resolve(null);
      },
    };
    expect((await deliver(() => query)).halt).toBeNull();
    expect(asked).toBe(true);
  });

  it('halts with class, SQLSTATE and position when the handler rejects or throws, and without the message', async () => {
    const throwing = (): never => {
      throw new DatabaseError(SECRET);
    };
    for (const handler of [fail, throwing]) {
      const { halt } = await deliver(handler);
      expect(halt).toMatchObject({
        code: 'sink_failed',
        detail:
          'a handler of OrderSink failed with DatabaseError (SQLSTATE 23505)',
        lsn: 10n,
      });
      expect(inspect(halt, { depth: 9, showHidden: true })).not.toContain(
        SECRET,
      );
      expect(halt?.sinkError()).toBeInstanceOf(DatabaseError);
    }
  });

  it('prints no class name or code that could carry a value', async () => {
    const named = new Error('m');
    Object.defineProperty(named, 'constructor', { value: { name: SECRET } });
    Object.assign(named, { code: SECRET });
    const { halt } = await deliver(async () => Promise.reject(named));
    expect(halt?.detail).toBe('a handler of OrderSink failed with Error');
    const text = await deliver(async () => Promise.reject(SECRET));
    expect(text.halt?.detail).toBe('a handler of OrderSink failed with string');
  });

  it('takes the halt of another pipeline, on which a handler waited, for an error of the sink', async () => {
    const other = new HaltError('publication/missing', { detail: 'elsewhere' });
    const { halt } = await deliver(async () => Promise.reject(other));
    expect(halt?.code).toBe('sink_failed');
    expect(halt?.sinkError()).toBe(other);
  });

  it('halts when the handler returns no promise', async () => {
    for (const value of [undefined, null, true, { then: 1 }]) {
      const { halt } = await deliver(() => value);
      expect(halt?.code).toBe('sink_failed/no_promise');
    }
    const inside = await deliver(async () => {
      await promiseOf('OrderSink.told', undefined);
    });
    expect(inside.halt).toMatchObject({
      code: 'sink_failed/no_promise',
      detail: 'OrderSink.told returned no promise',
    });
  });
});

describe('the option around', () => {
  it('runs the handler inside', async () => {
    const order: string[] = [];
    const { halt } = await deliver(
      async () => void order.push('handler'),
      async ({ kind }, next) => {
        order.push(`before ${kind}`);
        await next();
        order.push('after');
      },
    );
    expect(halt).toBeNull();
    expect(order).toEqual(['before transaction', 'handler', 'after']);
  });

  it('cannot turn a failed write into a confirmed one', async () => {
    const { halt } = await deliver(fail, async (_, next) => {
      await next().catch(() => {});
    });
    expect(halt?.code).toBe('sink_failed');
    const forgotten = await deliver(fail, async (_, next) => {
      void next().catch(() => {});
    });
    expect(forgotten.halt?.code).toBe('sink_failed');
  });

  it('cannot turn a durable write into a failure, but is reported', async () => {
    const { halt, faults } = await deliver(succeed, async (_, next) => {
      await next();
      throw new TypeError(SECRET);
    });
    expect(halt).toBeNull();
    expect(faults).toEqual(['TypeError']);
  });

  it('cannot confirm before the handler has settled', async () => {
    let settled = false;
    await deliver(
      async () => {
        await new Promise((resolve) => setTimeout(resolve, 20));
        settled = true;
      },
      async (_, next) => {
        void next();
      },
    );
    expect(settled).toBe(true);
  });

  it('runs the handler once, however often it calls next', async () => {
    let calls = 0;
    await deliver(
      async () => void (calls += 1),
      async (_, next) => {
        await Promise.all([next(), next()]);
        await next();
      },
    );
    expect(calls).toBe(1);
  });

  it('cannot run the handler once the delivery has halted without it', async () => {
    let calls = 0;
    let late: () => Promise<void> = succeed;
    const { halt } = await deliver(
      async () => void (calls += 1),
      async (_, next) => void (late = next),
    );
    expect(halt?.code).toBe('sink_failed/around_skipped');
    void late();
    expect(calls).toBe(0);
  });

  it('halts when it does not call next', async () => {
    const skipped = await deliver(succeed, async () => {});
    expect(skipped.halt).toMatchObject({
      code: 'sink_failed/around_skipped',
      detail: 'around did not call next()',
    });
    const failed = await deliver(succeed, async () => {
      throw new RangeError(SECRET);
    });
    expect(failed.halt).toMatchObject({
      code: 'sink_failed/around_skipped',
      detail: 'around failed with RangeError',
    });
  });
});

describe('callSink with rows of a snapshot', () => {
  const delivery = {
    kind: 'snapshot',
    rows: [],
    context: {
      pipeline: 'p',
      slotName: 's',
      mode: 'incremental',
      relation: 'public.orders',
      snapshotLsn: 10n,
      firstForTable: true,
      complete: false,
      progress: SECRET,
    },
  } as const;

  /** What the call rejects with. */
  async function failureOf(
    call: () => unknown,
    around: AroundDelivery | null = null,
  ): Promise<unknown> {
    const what = 'the @OnSnapshot() method of OrderSink';
    return callSink({ delivery, what, call }, around, () => {}).then(
      () => expect.unreachable(),
      (error: unknown) => error,
    );
  }

  it('halts in its own way when the handler rejects or throws, and keeps the error', async () => {
    const error = new DatabaseError(SECRET);
    const throwing = (): never => {
      throw error;
    };
    for (const handler of [() => Promise.reject(error), throwing]) {
      const failure = await failureOf(handler);
      expect(failure).toMatchObject({
        halt: {
          code: 'snapshot_failed',
          detail:
            'the @OnSnapshot() method of OrderSink failed with DatabaseError (SQLSTATE 23505)',
          delivery: 'snapshot',
          lsn: null,
        },
      });
      expect(inspect(failure, { depth: null })).not.toContain(SECRET);
      if (failure instanceof HaltError)
        expect(failure.halt.sinkError()).toBe(error);
    }
  });

  it('halts as for other handlers without a promise, and when around calls none', async () => {
    expect(await failureOf(() => undefined)).toMatchObject({
      halt: { code: 'sink_failed/no_promise', delivery: 'snapshot' },
    });
    expect(await failureOf(succeed, async () => {})).toMatchObject({
      halt: { code: 'sink_failed/around_skipped', delivery: 'snapshot' },
    });
  });

  it('hands them to around', async () => {
    const seen: unknown[] = [];
    const around: AroundDelivery = async (given, next) => {
      seen.push(given);
      await next();
    };
    await callSink({ delivery, what: 'a', call: succeed }, around, () => {});
    expect(seen).toEqual([delivery]);
  });

  it('connects anew when another process has written the checkpoint: the sink did right', async () => {
    const failure = await failureOf(async () => {
      throw new CheckpointMovedError('s');
    });
    expect(failure).toBeInstanceOf(ConnectionFault);
    expect(failure).toMatchObject({
      message: 'another process has written the checkpoint of this slot',
      retryAfterMs: null,
    });
  });
});
