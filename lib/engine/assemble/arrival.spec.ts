import { describe, expect, it, vi } from 'vitest';
import type { Change } from '../model/change.js';
import { ChangesError } from '../model/changes-error.js';
import { ConnectionFault } from '../model/connection-fault.js';
import type { Lsn } from '../model/lsn.js';
import { Arrival } from './arrival.js';
import { madeChange } from '../../../test/support/made-change.js';

/** One that was handed over with the changes 0 and 1. */
function begun() {
  const ports = {
    drained: vi.fn<() => void>(),
    readToEnd: vi.fn<(end: Lsn) => void>(),
  };
  const arrival = new Arrival([madeChange(0), madeChange(1)], 20, ports);
  return { arrival, ...ports };
}

function arrive(arrival: Arrival, ...ordinals: number[]): void {
  for (const ordinal of ordinals) {
    arrival.push(madeChange(ordinal));
    arrival.received(10);
  }
}

/** Reads everything; what was read is there before the end too. */
function reading(arrival: Arrival): {
  readonly ordinals: number[];
  readonly end: Promise<void>;
} {
  const ordinals: number[] = [];
  const read = async (): Promise<void> => {
    for await (const { ordinal } of arrival.changes) ordinals.push(ordinal);
  };
  return { ordinals, end: read() };
}

function next(
  iterator: AsyncIterator<Change>,
): Promise<IteratorResult<Change, unknown>> {
  return iterator.next();
}

function isIterable(iterator: object): iterator is AsyncIterable<Change> {
  return Symbol.asyncIterator in iterator;
}

/** Lets everything run that is ready. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

const lost = new ConnectionFault('lost');

describe('reading', () => {
  it('gives what arrived before and after, and ends with the Commit only', async () => {
    const { arrival, readToEnd } = begun();
    const { ordinals, end } = reading(arrival);
    arrive(arrival, 2, 3);
    await turn();
    arrive(arrival, 4);
    await turn();
    expect(ordinals).toEqual([0, 1, 2, 3, 4]);
    expect(arrival.complete).toBe(false);
    expect(readToEnd).not.toHaveBeenCalled();
    arrival.end(9n);
    await end;
    expect(readToEnd).toHaveBeenCalledExactlyOnceWith(9n);
    await expect(arrival.ended).resolves.toBe(9n);
    expect(arrival).toMatchObject({ bytes: 0, count: 5, broken: null });
  });

  it('tells when its reader asked last, and that one who waits still asks', async () => {
    const { arrival } = begun();
    const iterator = arrival.changes[Symbol.asyncIterator]();
    const before = performance.now();
    await iterator.next();
    const asked = arrival.askedAt;
    expect(asked).toBeGreaterThanOrEqual(before);
    while (performance.now() <= asked);
    expect(arrival.askedAt).toBe(asked);
    await iterator.next();
    expect(arrival.askedAt).toBeGreaterThan(asked);

    const waiting = iterator.next();
    const one = arrival.askedAt;
    while (performance.now() <= one);
    expect(arrival.askedAt).toBeGreaterThan(one);
    arrive(arrival, 2);
    await waiting;
  });

  it('gives what had arrived when the Commit did (empty rest)', async () => {
    const { arrival } = begun();
    arrival.end(9n);
    const { ordinals, end } = reading(arrival);
    await end;
    expect(ordinals).toEqual([0, 1]);
  });

  it('answers calls that do not wait for one another in their order', async () => {
    const { arrival } = begun();
    const iterator = arrival.changes[Symbol.asyncIterator]();
    const answers = Promise.all(
      Array.from({ length: 5 }, () => next(iterator)),
    );
    arrive(arrival, 2);
    await turn();
    arrive(arrival, 3);
    arrival.end(9n);
    const values = (await answers).map(({ value, done }) =>
      done === true ? 'end' : value.ordinal,
    );
    expect(values).toEqual([0, 1, 2, 3, 'end']);
    await expect(next(iterator)).resolves.toMatchObject({ done: true });
  });

  it('answers readers that ask ahead in their order, also after a long turn', async () => {
    const count = 2_000;
    const { arrival } = begun();
    arrive(arrival, ...Array.from({ length: count }, (_, index) => index + 2));
    arrival.end(9n);
    const iterator = arrival.changes[Symbol.asyncIterator]();
    const ordinals: number[] = [];
    let calls = 0;
    const lane = async (): Promise<void> => {
      for (;;) {
        const call = calls++;
        const answer = await next(iterator);
        if (answer.done === true) return;
        ordinals[call] = answer.value.ordinal;
        const began = performance.now();
        while (performance.now() - began < 0.05);
      }
    };
    await Promise.all([lane(), lane(), lane()]);
    expect(ordinals).toEqual(
      Array.from({ length: count + 2 }, (_, index) => index),
    );
  });

  it('goes on with the same iterator in a loop', async () => {
    const { arrival } = begun();
    arrival.end(9n);
    const iterator = arrival.changes[Symbol.asyncIterator]();
    await next(iterator);
    const rest: number[] = [];
    if (!isIterable(iterator)) throw new Error('It cannot be read in a loop.');
    for await (const { ordinal } of iterator) rest.push(ordinal);
    expect(rest).toEqual([1]);
  });

  it('lets timers run although all is there (C02)', async () => {
    const { arrival } = begun();
    arrive(arrival, ...Array.from({ length: 1_000 }, (_, index) => index + 2));
    arrival.end(9n);
    let read = 0;
    let readAtTimer = -1;
    setTimeout(() => (readAtTimer = read), 1);
    for await (const { ordinal } of arrival.changes) {
      const began = performance.now();
      while (performance.now() - began < 0.1);
      read = ordinal;
    }
    expect(readAtTimer).toBeGreaterThan(0);
    expect(readAtTimer).toBeLessThan(900);
  });

  it('counts what was not read yet, and says when it is less', async () => {
    const { arrival, drained } = begun();
    arrive(arrival, 2);
    expect(arrival.bytes).toBe(30);
    const iterator = arrival.changes[Symbol.asyncIterator]();
    for (let index = 0; index < 3; index++) await next(iterator);
    void next(iterator);
    expect(arrival.bytes).toBe(0);
    expect(drained).toHaveBeenCalled();
  });
});

describe('a handler that has had enough', () => {
  it('discards the rest when it leaves its loop, and still counts it', async () => {
    const { arrival, drained, readToEnd } = begun();
    for await (const { ordinal } of arrival.changes) if (ordinal === 0) break;
    expect(arrival.bytes).toBe(0);
    expect(drained).toHaveBeenCalledOnce();
    arrive(arrival, 2, 3);
    expect(arrival).toMatchObject({ bytes: 0, count: 4 });
    arrival.end(9n);
    expect(readToEnd).not.toHaveBeenCalled();
    expect(() => arrival.changes[Symbol.asyncIterator]()).toThrow(ChangesError);
  });

  it('discards the rest when it settles', async () => {
    const { arrival } = begun();
    arrival.settle();
    arrive(arrival, 2);
    expect(arrival.bytes).toBe(0);
    arrival.end(9n);
    await expect(arrival.ended).resolves.toBe(9n);
  });

  it('is not told of a loss that came after', async () => {
    const { arrival } = begun();
    const iterator = arrival.changes[Symbol.asyncIterator]();
    await next(iterator);
    await iterator.return?.();
    arrival.fail(lost);
    await expect(next(iterator)).resolves.toMatchObject({ done: true });
    expect(arrival.broken).toBeNull();
  });

  it('ends a reading that waits when another part of it leaves', async () => {
    const { arrival } = begun();
    const iterator = arrival.changes[Symbol.asyncIterator]();
    await next(iterator);
    await next(iterator);
    const waiting = next(iterator);
    await iterator.return?.();
    await expect(waiting).resolves.toMatchObject({ done: true });
  });
});

describe('misuse', () => {
  it('is a second reading, also at the same time and after the end', async () => {
    const { arrival } = begun();
    const { end } = reading(arrival);
    expect(() => arrival.changes[Symbol.asyncIterator]()).toThrow(
      /second time/,
    );
    arrival.end(9n);
    await end;
    await expect(reading(arrival).end).rejects.toThrow(ChangesError);
  });

  it('is any reading after the handler has settled', async () => {
    const { arrival } = begun();
    const iterator = arrival.changes[Symbol.asyncIterator]();
    await next(iterator);
    arrival.settle();
    await expect(next(iterator)).rejects.toThrow(/after its handler/);
    await expect(next(iterator)).rejects.toThrow(ChangesError);
    expect(() => arrival.changes[Symbol.asyncIterator]()).toThrow(
      /after its handler/,
    );
    expect(arrival.broken).toBeNull();
  });

  it('wakes a reading that waits when the handler settles', async () => {
    const { arrival } = begun();
    const { end } = reading(arrival);
    await turn();
    arrival.settle();
    await expect(end).rejects.toThrow(ChangesError);
  });
});

describe('a loss', () => {
  it('reaches a reader that waits', async () => {
    const { arrival } = begun();
    const { ordinals, end } = reading(arrival);
    await turn();
    arrival.fail(lost);
    await expect(end).rejects.toBe(lost);
    expect(ordinals).toEqual([0, 1]);
    expect(arrival.broken).toBe(lost);
    await expect(arrival.ended).rejects.toBe(lost);
  });

  it('reaches a reader with its next step, and every later one', async () => {
    const { arrival } = begun();
    const iterator = arrival.changes[Symbol.asyncIterator]();
    await next(iterator);
    arrival.fail(lost);
    expect(arrival.broken).toBeNull();
    expect(arrival.bytes).toBe(0);
    await expect(next(iterator)).rejects.toBe(lost);
    await expect(next(iterator)).rejects.toBe(lost);
    expect(arrival.broken).toBe(lost);
  });

  it('ends no process whose reader had asked ahead and looks late', async () => {
    const unhandled: unknown[] = [];
    const listener = (error: unknown): unknown => unhandled.push(error);
    process.on('unhandledRejection', listener);
    const { arrival } = begun();
    const iterator = arrival.changes[Symbol.asyncIterator]();
    await next(iterator);
    await next(iterator);
    const ahead = next(iterator);
    arrival.fail(lost);
    const later = next(iterator);
    await turn();
    await turn();
    process.off('unhandledRejection', listener);
    expect(unhandled).toEqual([]);
    await expect(ahead).rejects.toBe(lost);
    await expect(later).rejects.toBe(lost);
  });

  it('reaches a reader that begins later', async () => {
    const { arrival } = begun();
    arrival.fail(lost);
    await expect(reading(arrival).end).rejects.toBe(lost);
    expect(arrival.broken).toBe(lost);
  });
});
