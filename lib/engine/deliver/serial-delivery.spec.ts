import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { deferred, type Deferred } from '../model/deferred.js';
import type { Transaction } from '../model/transaction.js';
import {
  SerialDelivery,
  type TransactionWork,
  type Work,
} from './serial-delivery.js';

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

/** A delivery whose sink waits to be told; everything it does is in the log. */
class Stage {
  readonly log: string[] = [];
  readonly running: Deferred<void>[] = [];
  readonly errors: unknown[] = [];
  storing: Deferred<void> | null = null;
  readonly delivery = new SerialDelivery({
    deliver: async (one) => {
      this.log.push(`deliver ${one.transaction.xid}`);
      const handler = deferred<void>();
      this.running.push(handler);
      await handler.promise;
      return one.kind === 'transaction' ? one.end : one.arrival.ended;
    },
    store: () => {
      this.log.push('store');
      this.storing = deferred();
      return this.storing.promise;
    },
    settled: (end) => this.log.push(`settled ${end}`),
    failed: (error) => {
      this.log.push('failed');
      this.errors.push(error);
    },
  });

  async finish(index: number): Promise<void> {
    this.running[index]?.resolve();
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

describe('SerialDelivery', () => {
  it('tells what had nothing to make durable', async () => {
    const settled: [bigint, boolean][] = [];
    const delivery = new SerialDelivery({
      deliver: async () => 10n,
      store: async () => {},
      settled: (end, empty) => settled.push([end, empty]),
      failed: () => {},
    });
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
    const delivery: SerialDelivery = new SerialDelivery({
      deliver: async () => {
        log.push('started');
        void delivery.stop().then(() => log.push('stopped'));
        await handler.promise;
        return 10n;
      },
      store: async () => {},
      settled: () => log.push('settled'),
      failed: () => {},
    });
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
    const delivery = new SerialDelivery({
      deliver: async () => {
        const began = performance.now();
        while (performance.now() - began < 1);
        delivered += 1;
        return 10n;
      },
      store: async () => {},
      settled: () => {},
      failed: () => {},
    });
    for (let end = 1n; end <= 300n; end += 1n) delivery.push(work(end));
    await new Promise((resolve) => setTimeout(resolve, 1));
    expect(delivered).toBeLessThan(200);
    await delivery.stop();
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
    void stage.delivery.stop().then(() => {
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
    const stopping = stage.delivery.stop();
    stage.running[0]?.reject(new Error('no'));
    await stopping;
    expect(stage.log.at(-1)).toBe('failed');
  });
});
