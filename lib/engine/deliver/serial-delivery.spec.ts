import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ConnectionFault } from '../model/connection-fault.js';
import { deferred, type Deferred } from '../model/deferred.js';
import type { Transaction } from '../model/transaction.js';
import { type DeliveryPorts, SerialDelivery } from './serial-delivery.js';
import type { BatchLimits } from './open-batch.js';
import type { TransactionWork, Work } from './work.js';

function work(end: bigint, bytes = 10): TransactionWork {
  const transaction: Transaction = {
    pipeline: 'p',
    slotName: 's',
    xid: Number(end),
    commitLsn: end - 1n,
    commitEndLsn: end,
    commitTime: new Date(0),
    commitTimeMicros: 0n,
    changes: [],
    messages: [],
  };
  return {
    kind: 'transaction',
    transaction,
    changes: 0,
    bytes,
    end,
    shapes: [],
  };
}

/** What each transaction counts beside its payload. */
const ALLOWANCE = 512;

function pass(end: bigint): Work {
  return { kind: 'pass', end, empty: false };
}

function chunk(relation: string, bytes = 0): Work {
  return {
    kind: 'chunk',
    bytes,
    begin: () => ({
      rows: [],
      context: {
        pipeline: 'orders',
        slotName: 'orders',
        mode: 'incremental',
        relation,
        snapshotLsn: 1n,
        firstForTable: false,
        complete: false,
        progress: null,
      },
    }),
    taken: () => {},
  };
}

/** Ports of a delivery without batches, of which some do something. */
function ports(some: Partial<DeliveryPorts>): DeliveryPorts {
  return {
    deliver: async () => 10n,
    copy: async () => {},
    copied: () => {},
    gather: async () => {},
    flush: async () => {},
    batchLost: () => {},
    store: async () => {},
    blocked: () => false,
    settled: () => {},
    failed: () => {},
    ...some,
  };
}

/** A delivery whose sink waits to be told; everything it does is in the log. */
class Stage {
  readonly log: string[] = [];
  readonly running: Deferred<void>[] = [];
  readonly errors: unknown[] = [];
  storing: Deferred<void> | null = null;
  blocked = false;
  readonly delivery: SerialDelivery;

  constructor(limits: BatchLimits | null = null) {
    this.delivery = new SerialDelivery(
      {
        deliver: async (one) => {
          if (one.kind === 'message') {
            await this.#work(`message ${one.message.lsn}`);
            return one.message.lsn;
          }
          await this.#work(`deliver ${one.transaction.xid}`);
          return one.kind === 'transaction' ? one.end : one.arrival.ended;
        },
        copy: (one) => this.#work(`copy ${one.begin().context.relation}`),
        copied: () => this.log.push('copied'),
        gather: (one) => this.#work(`gather ${one.transaction.xid}`),
        flush: (works, reason) =>
          this.#work(
            `flush ${works.map(({ transaction }) => transaction.xid).join(' ')}: ${reason}`,
          ),
        batchLost: () => this.log.push('batch lost'),
        store: () => {
          this.log.push('store');
          this.storing = deferred();
          return this.storing.promise;
        },
        blocked: () => this.blocked,
        settled: (end) => this.log.push(`settled ${end}`),
        failed: (error) => {
          this.log.push('failed');
          this.errors.push(error);
        },
      },
      limits,
    );
  }

  async #work(what: string): Promise<void> {
    this.log.push(what);
    const handler = deferred<void>();
    this.running.push(handler);
    await handler.promise;
  }

  /** What it has done since the last look. */
  news(): string[] {
    return this.log.splice(0);
  }

  async finish(index: number): Promise<void> {
    this.running[index]?.resolve();
    await turn();
  }

  /** Ends what was begun last. */
  async finishLast(): Promise<void> {
    await this.finish(this.running.length - 1);
  }

  async failLast(error: Error): Promise<void> {
    this.running.at(-1)?.reject(error);
    await turn();
  }
}

/** Lets everything run that is ready. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

// A busy machine must not use up the turn of a delivery, which then waits for another one.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});

afterEach(() => {
  vi.useRealTimers();
});

describe('rows of a snapshot', () => {
  it('keep their place between transactions, and count for nothing', async () => {
    const stage = new Stage();
    stage.delivery.push(work(10n));
    stage.delivery.push(chunk('public.a'));
    stage.delivery.push(work(20n));
    expect(stage.delivery.bytes).toBe(2 * (10 + ALLOWANCE));
    await stage.finish(0);
    expect(stage.news()).toEqual(['deliver 10', 'settled 10', 'copy public.a']);
    await stage.finish(1);
    expect(stage.news()).toEqual(['copied', 'deliver 20']);
    await stage.finish(2);
    expect(stage.news()).toEqual(['settled 20']);
    expect(stage.delivery.bytes).toBe(0);
  });

  it('count what they hold of the stream until they are done', async () => {
    const stage = new Stage();
    stage.delivery.push(chunk('', 300));
    stage.delivery.push(chunk('', 40));
    expect(stage.delivery.bytes).toBe(340);
    await stage.finish(0);
    expect(stage.delivery.bytes).toBe(40);
    await stage.finish(1);
    expect(stage.delivery.bytes).toBe(0);
  });

  it('that fail keep back what comes after them', async () => {
    const stage = new Stage();
    stage.delivery.push(chunk('public.a'));
    stage.delivery.push(work(20n));
    await stage.failLast(new Error('no'));
    expect(stage.news()).toEqual(['copy public.a', 'failed']);
  });
});

describe('SerialDelivery', () => {
  it('tells what had nothing to make durable', async () => {
    const settled: [bigint, boolean][] = [];
    const delivery = new SerialDelivery(
      ports({
        deliver: async () => 10n,
        store: async () => {},
        settled: (end, empty) => settled.push([end, empty]),
        failed: () => {},
      }),
    );
    delivery.push(work(10n));
    delivery.push({ kind: 'pass', end: 20n, empty: true });
    delivery.push({ kind: 'pass', end: 30n, empty: false });
    await turn();
    expect(settled).toEqual([
      [10n, false],
      [20n, true],
      [30n, false],
    ]);
  });

  it('delivers one at a time, in order', async () => {
    const stage = new Stage();
    stage.delivery.push(work(10n));
    stage.delivery.push(work(20n));
    await turn();
    expect(stage.log).toEqual(['deliver 10']);
    await stage.finish(0);
    expect(stage.log.slice(1)).toEqual(['settled 10', 'deliver 20']);
    await stage.finish(1);
    expect(stage.log.at(-1)).toBe('settled 20');
  });

  it('stops only when a handler has settled that asked for it before its first await', async () => {
    const handler = deferred<void>();
    const log: string[] = [];
    const delivery: SerialDelivery = new SerialDelivery(
      ports({
        deliver: async () => {
          log.push('started');
          void delivery.stop('discard').then(() => log.push('stopped'));
          await handler.promise;
          return 10n;
        },
        store: async () => {},
        settled: () => log.push('settled'),
        failed: () => {},
      }),
    );
    delivery.push(work(10n));
    await turn();
    expect(log).toEqual(['started']);
    handler.resolve();
    await turn();
    expect(log).toEqual(['started', 'settled', 'stopped']);
  });

  it('lets timers run between handlers that wait for nothing', async () => {
    vi.useRealTimers();
    let delivered = 0;
    const delivery = new SerialDelivery(
      ports({
        deliver: async () => {
          const began = performance.now();
          while (performance.now() - began < 1);
          delivered += 1;
          return 10n;
        },
        store: async () => {},
        settled: () => {},
        failed: () => {},
      }),
    );
    for (let end = 1n; end <= 300n; end += 1n) delivery.push(work(end));
    await new Promise((resolve) => setTimeout(resolve, 1));
    expect(delivered).toBeLessThan(200);
    await delivery.stop('discard');
  });

  it('counts bytes until they are durable', async () => {
    const stage = new Stage();
    stage.delivery.push(work(10n, 7));
    stage.delivery.push(work(20n, 5));
    expect(stage.delivery.bytes).toBe(12 + 2 * ALLOWANCE);
    await turn();
    expect(stage.delivery.bytes).toBe(12 + 2 * ALLOWANCE);
    await stage.finish(0);
    expect(stage.delivery.bytes).toBe(5 + ALLOWANCE);
    await stage.finish(1);
    expect(stage.delivery.bytes).toBe(0);
  });

  it('counts what a transaction that still arrives holds, from the queue on until it is durable', async () => {
    const stage = new Stage();
    const ended = deferred<bigint>();
    const arrival = {
      bytes: 70,
      count: 1,
      askedAt: 0,
      complete: false,
      fault: null,
      broken: null,
      ended: ended.promise,
      settle: () => {},
    };
    const { transaction } = work(20n);
    stage.delivery.push(work(10n, 7));
    stage.delivery.push({ kind: 'arriving', transaction, arrival, shapes: [] });
    expect(stage.delivery.bytes).toBe(77 + ALLOWANCE);
    expect(stage.delivery.arrivingBytes).toBe(70);
    await turn();
    await stage.finish(0);
    arrival.bytes = 60;
    expect(stage.delivery.bytes).toBe(60);
    await stage.finish(1);
    expect(stage.log.at(-1)).toBe('deliver 20');
    ended.resolve(20n);
    await turn();
    expect(stage.log.at(-1)).toBe('settled 20');
    expect(stage.delivery.bytes).toBe(0);
    expect(stage.delivery.arrivingBytes).toBe(0);
  });

  it('lets work without a transaction keep its place, and the sink hears nothing of it', async () => {
    const stage = new Stage();
    stage.delivery.push(work(10n));
    stage.delivery.push(pass(15n));
    await turn();
    expect(stage.log).not.toContain('settled 15');
    await stage.finish(0);
    expect(stage.log.slice(1)).toEqual(['settled 10', 'settled 15']);
  });

  it('stores between two deliveries, before the next one, and once however often it is asked', async () => {
    const stage = new Stage();
    stage.delivery.push(work(10n));
    stage.delivery.push(work(20n));
    stage.delivery.requestStore();
    stage.delivery.requestStore();
    await turn();
    expect(stage.log).not.toContain('store');
    await stage.finish(0);
    expect(stage.log.slice(1)).toEqual(['settled 10', 'store']);
    stage.storing?.resolve();
    await turn();
    expect(stage.log.slice(3)).toEqual(['deliver 20']);
  });

  it('stores at once when it has nothing else to do', async () => {
    const stage = new Stage();
    stage.delivery.requestStore();
    await turn();
    expect(stage.log).toEqual(['store']);
  });

  it('ends with the first failure', async () => {
    const stage = new Stage();
    stage.delivery.push(work(10n));
    stage.delivery.push(work(20n));
    await turn();
    const error = new Error('no');
    stage.running[0]?.reject(error);
    await turn();
    stage.delivery.push(work(30n));
    stage.delivery.requestStore();
    await turn();
    expect(stage.errors).toEqual([error]);
    expect(stage.log).toEqual(['deliver 10', 'failed']);
  });

  it('ends when a store fails', async () => {
    const stage = new Stage();
    stage.delivery.requestStore();
    await turn();
    stage.storing?.reject(new Error('no'));
    await turn();
    stage.delivery.push(work(10n));
    await turn();
    expect(stage.log).toEqual(['store', 'failed']);
  });

  it('stops when the running delivery has settled, and begins no other', async () => {
    const stage = new Stage();
    stage.delivery.push(work(10n));
    stage.delivery.push(work(20n));
    stage.delivery.requestStore();
    await turn();
    let stopped = false;
    void stage.delivery.stop('discard').then(() => {
      stopped = true;
    });
    stage.delivery.push(work(30n));
    await turn();
    expect(stopped).toBe(false);
    await stage.finish(0);
    expect(stopped).toBe(true);
    await turn();
    expect(stage.log).toEqual(['deliver 10', 'settled 10']);
  });

  it('stops also when the running delivery fails', async () => {
    const stage = new Stage();
    stage.delivery.push(work(10n));
    await turn();
    const stopping = stage.delivery.stop('discard');
    stage.running[0]?.reject(new Error('no'));
    await stopping;
    expect(stage.log.at(-1)).toBe('failed');
  });
});

describe('a delivery in batches', () => {
  const NEVER = { maxTransactions: 100, maxBytes: 1e9, maxDelayMs: 1e6 };
  const message: Work = {
    kind: 'message',
    message: {
      transactional: false,
      lsn: 50n,
      prefix: '',
      content: Buffer.alloc(0),
      ordinal: null,
    },
    bytes: 1,
  };

  /** A stage that gathers these transactions and ends each `gather`. */
  async function gathered(
    limits: Partial<BatchLimits>,
    ...works: Work[]
  ): Promise<Stage> {
    const stage = new Stage({ ...NEVER, ...limits });
    for (const one of works) {
      stage.delivery.push(one);
      await turn();
      if (one.kind === 'transaction') await stage.finishLast();
    }
    return stage;
  }

  it('is durable together when it has as many transactions as it may', async () => {
    const stage = await gathered({ maxTransactions: 2 }, work(10n), work(20n));
    expect(stage.news()).toEqual([
      'gather 10',
      'gather 20',
      'flush 10 20: count',
    ]);
    await stage.finishLast();
    expect(stage.news()).toEqual(['settled 10', 'settled 20']);
    expect(stage.delivery.bytes).toBe(0);
  });

  it('is closed at its bytes, by whole transactions', async () => {
    const stage = await gathered(
      { maxBytes: 1000 + 2 * ALLOWANCE },
      work(10n, 999),
      work(20n, 1),
    );
    expect(stage.news().at(-1)).toBe('flush 10 20: bytes');
  });

  it('is closed when it is old enough, and a later one has its own time', async () => {
    vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
    const stage = await gathered({ maxDelayMs: 100 }, work(10n));
    vi.advanceTimersByTime(60);
    stage.delivery.push(work(20n));
    await turn();
    await stage.finishLast();
    vi.advanceTimersByTime(39);
    await turn();
    expect(stage.news()).toEqual(['gather 10', 'gather 20']);
    vi.advanceTimersByTime(1);
    await turn();
    expect(stage.news()).toEqual(['flush 10 20: delay']);
    await stage.finishLast();
    expect(vi.getTimerCount()).toBe(0);
    stage.delivery.push(work(30n));
    await turn();
    await stage.finishLast();
    vi.advanceTimersByTime(99);
    await turn();
    expect(stage.news().at(-1)).toBe('gather 30');
    vi.advanceTimersByTime(1);
    await turn();
    expect(stage.news()).toEqual(['flush 30: delay']);
  });

  it('that is overdue while a transaction joins is closed behind that one', async () => {
    vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
    const stage = await gathered({ maxDelayMs: 100 }, work(10n));
    stage.delivery.push(work(20n));
    await turn();
    vi.advanceTimersByTime(100);
    await turn();
    expect(stage.news()).toEqual(['gather 10', 'gather 20']);
    await stage.finishLast();
    await turn();
    expect(stage.news()).toEqual(['flush 10 20: delay']);
  });

  it('holds back what needs nothing of the sink until everything before is durable', async () => {
    const stage = await gathered({}, pass(5n), work(10n), pass(15n));
    expect(stage.news()).toEqual(['settled 5', 'gather 10']);
    stage.delivery.push(work(20n));
    await turn();
    await stage.finishLast();
    void stage.delivery.stop('flush');
    await turn();
    await stage.finishLast();
    expect(stage.news()).toEqual([
      'gather 20',
      'flush 10 20: stop',
      'settled 10',
      'settled 15',
      'settled 20',
    ]);
  });

  it('is closed at its bytes by what passes it by too', async () => {
    const stage = await gathered(
      { maxBytes: 3 * ALLOWANCE },
      work(10n, 0),
      pass(15n),
    );
    expect(stage.delivery.bytes).toBe(2 * ALLOWANCE);
    expect(stage.news()).toEqual(['gather 10']);
    stage.delivery.push(pass(16n));
    await turn();
    expect(stage.news()).toEqual(['flush 10: bytes']);
    await stage.finishLast();
    expect(stage.news()).toEqual(['settled 10', 'settled 15', 'settled 16']);
    expect(stage.delivery.bytes).toBe(0);
  });

  it('is closed when nothing more arrives before it is durable, behind all that has arrived', async () => {
    const stage = await gathered({}, work(10n));
    stage.delivery.held();
    await turn();
    expect(stage.news()).toEqual(['gather 10']);
    stage.delivery.push(work(20n));
    await turn();
    stage.delivery.push(work(30n));
    stage.blocked = true;
    stage.delivery.held();
    await stage.finishLast();
    expect(stage.news()).toEqual(['gather 20', 'gather 30']);
    await stage.finishLast();
    expect(stage.news()).toEqual(['flush 10 20 30: bytes']);

    const idle = await gathered({}, work(10n));
    idle.blocked = true;
    idle.delivery.held();
    await turn();
    expect(idle.news()).toEqual(['gather 10', 'flush 10: bytes']);
  });

  it('is closed when somebody asks for that, also with what joins it at that moment', async () => {
    const stage = new Stage(NEVER);
    stage.delivery.closeBatch('stop');
    stage.delivery.push(work(10n));
    await turn();
    stage.delivery.closeBatch('stop');
    await stage.finishLast();
    expect(stage.news()).toEqual(['gather 10', 'flush 10: stop']);
    await stage.finishLast();
    stage.delivery.push(work(20n));
    await turn();
    await stage.finishLast();
    expect(stage.news()).toEqual(['settled 10', 'gather 20']);
  });

  it('is made durable before rows of a snapshot are handed over, and a failure of it keeps them back', async () => {
    const stage = await gathered({}, work(10n), chunk('public.a'));
    expect(stage.news()).toEqual(['gather 10', 'flush 10: snapshot']);
    await stage.finishLast();
    expect(stage.news()).toEqual(['settled 10', 'copy public.a']);
    await stage.finishLast();
    expect(stage.news()).toEqual(['copied']);

    const failing = await gathered({}, work(10n), chunk('public.a'));
    await failing.failLast(new Error('no'));
    expect(failing.news()).toEqual([
      'gather 10',
      'flush 10: snapshot',
      'failed',
    ]);
  });

  it('is made durable before a message is handed over, and a failure of it keeps the message back', async () => {
    const stage = await gathered({}, work(10n), message);
    expect(stage.news()).toEqual(['gather 10', 'flush 10: message']);
    await stage.finishLast();
    expect(stage.news()).toEqual(['settled 10', 'message 50']);
    await stage.finishLast();
    expect(stage.news()).toEqual(['settled 50']);

    const failing = await gathered({}, work(10n), message);
    await failing.failLast(new Error('no'));
    expect(failing.news()).toEqual([
      'gather 10',
      'flush 10: message',
      'failed',
    ]);
  });

  it('is made durable before the connection ends in order', async () => {
    const fault = new ConnectionFault('a table has changed');
    const stage = await gathered({}, work(10n), { kind: 'end', fault });
    expect(stage.news()).toEqual(['gather 10', 'flush 10: stop']);
    await stage.finishLast();
    expect(stage.news()).toEqual(['settled 10', 'failed']);
    expect(stage.errors).toEqual([fault]);
  });

  it('is made durable by a stop that says so, after what runs, and once', async () => {
    const stage = await gathered({}, work(10n));
    stage.delivery.push(work(20n));
    await turn();
    const stopped = Promise.all([
      stage.delivery.stop('flush'),
      stage.delivery.stop('discard'),
    ]);
    await turn();
    await stage.finishLast();
    expect(stage.news()).toEqual([
      'gather 10',
      'gather 20',
      'flush 10 20: stop',
    ]);
    await stage.finishLast();
    await stopped;
    expect(stage.news()).toEqual(['settled 10', 'settled 20']);
  });

  it('is left by a stop that says so, without a timer', async () => {
    vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
    const stage = await gathered({}, work(10n));
    stage.delivery.push(work(20n));
    await turn();
    const stopped = stage.delivery.stop('discard');
    await stage.finishLast();
    await stopped;
    expect(stage.news()).toEqual(['gather 10', 'gather 20']);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('is made durable when the sink refuses the next transaction, which is what is told', async () => {
    const stage = await gathered({}, work(10n));
    stage.delivery.push(work(20n));
    await turn();
    const refusal = new Error('refused');
    await stage.failLast(refusal);
    expect(stage.news()).toEqual([
      'gather 10',
      'gather 20',
      'flush 10: failure',
    ]);
    await stage.finishLast();
    expect(stage.news()).toEqual(['settled 10', 'failed']);
    expect(stage.errors).toEqual([refusal]);
  });

  it('that cannot be made durable then is told, beside the refusal', async () => {
    const stage = await gathered({}, work(10n));
    stage.delivery.push(work(20n));
    await turn();
    const refusal = new Error('refused');
    await stage.failLast(refusal);
    await stage.failLast(new Error('store'));
    expect(stage.news().slice(-2)).toEqual(['batch lost', 'failed']);
    expect(stage.errors).toEqual([refusal]);
  });

  it('is not tried again after it failed', async () => {
    const stage = await gathered({ maxTransactions: 1 }, work(10n));
    await stage.failLast(new Error('no'));
    await stage.delivery.stop('flush');
    expect(stage.news()).toEqual(['gather 10', 'flush 10: count', 'failed']);
  });
});
