import { describe, expect, it } from 'vitest';
import { unreachable } from '../../test/support/stub-pipeline.js';
import { OnChange } from '../decorators/on-change.decorator.js';
import {
  DeleteChange,
  InsertChange,
  TruncateChange,
  UpdateChange,
} from '../engine/assemble/changes.js';
import { callSink } from '../engine/deliver/call-sink.js';
import type { Change } from '../engine/model/change.js';
import { HaltError } from '../engine/model/halt.js';
import type { Transaction } from '../engine/model/transaction.js';
import { Pipeline } from '../engine/pipeline.js';
import type { ChangeContext } from './change-handlers.js';
import { createSink } from './sink.factory.js';

const old = { kind: 'key', record: {} } as const;

/** One change of each kind of a table, from this ordinal on. */
function changesOf(table: string, from: number): Change[] {
  const relation = {
    oid: 1,
    schema: 'public',
    table,
    name: `public.${table}`,
    replicaIdentity: 'default',
    columns: [],
  } as const;
  return [
    new InsertChange(from, 1n, relation, {}),
    new UpdateChange(from + 1, 1n, relation, {}, [], old),
    new DeleteChange(from + 2, 1n, relation, old),
    new TruncateChange(from + 3, 1n, relation, false, false, []),
  ];
}

function transactionOf(changes: Transaction['changes']): Transaction {
  return {
    pipeline: 'default',
    slotName: 'orders',
    xid: 1,
    commitLsn: 1n,
    commitEndLsn: 2n,
    commitTime: new Date(0),
    commitTimeMicros: 0n,
    changes,
    messages: [],
  };
}

function handlerOf(
  sinkClass: { readonly name: string },
  instance: object,
): (transaction: Transaction) => unknown {
  const sink = createSink(
    sinkClass,
    instance,
    new Pipeline('default', {
      ...unreachable,
      checkpointStore: { connection: unreachable.connection },
    }),
  );
  return (transaction) => sink.transaction?.(transaction);
}

/** What the methods of a sink are called with, such as `first insert 0`. */
class Recording {
  readonly calls: string[] = [];

  protected note(method: string, { op, ordinal }: Change): void {
    this.calls.push(`${method} ${op} ${ordinal}`);
  }
}

async function callsOf(
  sink: Recording,
  changes: Transaction['changes'],
): Promise<readonly string[]> {
  await handlerOf(sink.constructor, sink)(transactionOf(changes));
  return sink.calls;
}

describe('@OnChange', () => {
  it('takes what happens to its table, in order, and passes over the rest', async () => {
    class Sink extends Recording {
      @OnChange('public.a')
      async all(change: Change): Promise<void> {
        this.note('all', change);
      }
    }
    expect(
      await callsOf(new Sink(), [...changesOf('b', 0), ...changesOf('a', 4)]),
    ).toEqual([
      'all insert 4',
      'all update 5',
      'all delete 6',
      'all truncate 7',
    ]);
  });

  it.each(['insert', 'update', 'delete', 'truncate'] as const)(
    'takes %s only, when it says so',
    async (op) => {
      class Sink extends Recording {
        @OnChange('public.a', { on: [op] })
        async some(change: Change): Promise<void> {
          this.note('some', change);
        }
      }
      const calls = await callsOf(new Sink(), changesOf('a', 0));
      expect(calls).toEqual([expect.stringMatching(`^some ${op} [0-3]$`)]);
    },
  );

  it('gives each change to all methods that take it, in the order of the class', async () => {
    class Sink extends Recording {
      @OnChange('public.a', { on: ['insert', 'delete'] })
      async first(change: Change): Promise<void> {
        this.note('first', change);
      }

      @OnChange('public.b', { on: ['insert'] })
      @OnChange('public.a', { on: ['delete'] })
      async second(change: Change): Promise<void> {
        this.note('second', change);
      }

      @OnChange('public.a', { on: ['insert'] })
      @OnChange('public.a', { on: ['delete'] })
      async third(change: Change): Promise<void> {
        this.note('third', change);
      }
    }
    expect(
      await callsOf(new Sink(), [...changesOf('a', 0), ...changesOf('b', 4)]),
    ).toEqual([
      'first insert 0',
      'third insert 0',
      'first delete 2',
      'second delete 2',
      'third delete 2',
      'second insert 4',
    ]);
  });

  it('awaits each method before it calls the next', async () => {
    class Sink extends Recording {
      @OnChange('public.a', { on: ['insert', 'update'] })
      async slow(change: Change): Promise<void> {
        await this.around('slow', change);
      }

      @OnChange('public.a', { on: ['insert', 'update'] })
      async other(change: Change): Promise<void> {
        await this.around('other', change);
      }

      private async around(method: string, change: Change): Promise<void> {
        this.note(`begin ${method}`, change);
        await new Promise((resolve) => setImmediate(resolve));
        this.note(`end ${method}`, change);
      }
    }
    expect(await callsOf(new Sink(), changesOf('a', 0))).toEqual([
      'begin slow insert 0',
      'end slow insert 0',
      'begin other insert 0',
      'end other insert 0',
      'begin slow update 1',
      'end slow update 1',
      'begin other update 1',
      'end other update 1',
    ]);
  });

  it('reads a transaction while it arrives, and lets go of it when a method rejects', async () => {
    class Sink extends Recording {
      @OnChange('public.a')
      async all(change: Change): Promise<void> {
        this.note('all', change);
        if (change.op === 'update') throw new RangeError('broken');
      }
    }
    let letGo = false;
    async function* arriving(): AsyncGenerator<Change> {
      try {
        yield* changesOf('a', 0);
      } finally {
        letGo = true;
      }
    }
    const sink = new Sink();
    await expect(callsOf(sink, arriving())).rejects.toThrow('broken');
    expect(sink.calls).toEqual(['all insert 0', 'all update 1']);
    expect(letGo).toBe(true);
  });

  it('calls inherited methods first, and an overriding one in the place of the overridden', async () => {
    class Base extends Recording {
      @OnChange('public.a', { on: ['insert'] })
      async first(change: Change): Promise<void> {
        this.note('base', change);
      }

      @OnChange('public.a', { on: ['insert', 'delete'] })
      async second(change: Change): Promise<void> {
        this.note('second', change);
      }
    }
    class Derived extends Base {
      @OnChange('public.a', { on: ['insert'] })
      async added(change: Change): Promise<void> {
        this.note('added', change);
      }

      override async first(change: Change): Promise<void> {
        this.note('derived', change);
      }

      @OnChange('public.a', { on: ['update'] })
      override async second(change: Change): Promise<void> {
        this.note('second', change);
      }
    }
    expect(await callsOf(new Derived(), changesOf('a', 0))).toEqual([
      'derived insert 0',
      'added insert 0',
      'second update 1',
    ]);
  });

  it('tells of the transaction', async () => {
    class Sink {
      readonly seen: unknown[] = [];

      @OnChange('public.a')
      async all(
        _change: Change,
        { transaction }: ChangeContext,
      ): Promise<void> {
        this.seen.push(transaction);
      }
    }
    const sink = new Sink();
    const transaction = transactionOf(changesOf('a', 0).slice(0, 1));
    await handlerOf(Sink, sink)(transaction);
    expect(sink.seen).toEqual([transaction]);
  });

  it('halts when a method returns no promise, and names it', async () => {
    class Sink extends Recording {
      @OnChange('public.a')
      async all(change: Change): Promise<void> {
        this.note('all', change);
      }
    }
    const sink = new Sink();
    Object.defineProperty(sink, 'all', { value: () => true });
    const transaction = transactionOf(changesOf('a', 0));
    const handle = handlerOf(Sink, sink);
    const failure: unknown = await callSink(
      {
        delivery: { kind: 'transaction', transaction },
        what: 'a handler of Sink',
        lsn: 1n,
        call: () => handle(transaction),
      },
      null,
      () => {},
    ).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(HaltError);
    expect(failure).toMatchObject({
      halt: {
        code: 'sink_failed/no_promise',
        detail: 'Sink.all returned no promise',
        lsn: 1n,
      },
    });
  });
});
