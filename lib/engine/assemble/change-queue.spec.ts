import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import type { Change } from '../model/change.js';
import { ChangeQueue } from './change-queue.js';
import { madeChange } from '../../../test/support/made-change.js';

function changes(count: number): Change[] {
  return Array.from({ length: count }, (_, ordinal) => madeChange(ordinal));
}

function takeAll(queue: ChangeQueue): number[] {
  const taken = [];
  for (let one = queue.take(); one !== undefined; one = queue.take())
    taken.push(one.ordinal);
  return taken;
}

describe('ChangeQueue', () => {
  it('gives every change once, in order, however pushes and takes alternate, and counts nothing in the end', () => {
    fc.assert(
      fc.property(
        fc.nat(50),
        fc.nat(400_000),
        fc.array(fc.record({ bytes: fc.nat(100_000), takes: fc.nat(3) }), {
          maxLength: 60,
        }),
        (first, firstBytes, steps) => {
          const queue = new ChangeQueue(
            changes(first),
            first === 0 ? 0 : firstBytes,
            () => {},
          );
          const taken = [];
          let pushed = first;
          for (const { bytes, takes } of steps) {
            queue.push(madeChange(pushed++));
            queue.count(bytes);
            for (let take = 0; take < takes; take++) {
              const one = queue.take();
              if (one !== undefined) taken.push(one.ordinal);
              expect(queue.bytes).toSatisfy(Number.isInteger);
            }
          }
          taken.push(...takeAll(queue));
          expect(taken).toEqual(changes(pushed).map(({ ordinal }) => ordinal));
          expect(queue.take()).toBeUndefined();
          expect(queue.bytes).toBe(0);
        },
      ),
    );
  });

  it('lets go in pieces of what it was begun with', () => {
    const drained = vi.fn<() => void>();
    const queue = new ChangeQueue(changes(1_000), 1_000_000, drained);
    expect(queue.bytes).toBe(1_000_000);
    for (let take = 0; take < 500; take++) queue.take();
    expect(queue.bytes).toBeGreaterThan(500_000 - 1);
    expect(queue.bytes).toBeLessThan(500_000 + 2 * 65_536);
    expect(drained.mock.calls.length).toBeGreaterThan(6);
  });

  it('holds a change until the next one is asked for', () => {
    const queue = new ChangeQueue([], 0, () => {});
    queue.push(madeChange(0));
    queue.count(100);
    expect(queue.take()?.ordinal).toBe(0);
    expect(queue.bytes).toBe(100);
    expect(queue.take()).toBeUndefined();
    expect(queue.bytes).toBe(0);
  });

  it('goes on after it was cleared', () => {
    const drained = vi.fn<() => void>();
    const queue = new ChangeQueue(changes(10), 500_000, drained);
    queue.take();
    queue.push(madeChange(10));
    queue.count(10);
    queue.clear();
    expect(queue.bytes).toBe(0);
    expect(drained).toHaveBeenCalledOnce();
    expect(queue.take()).toBeUndefined();
    queue.push(madeChange(11));
    queue.count(10);
    expect(takeAll(queue)).toEqual([11]);
  });
});
