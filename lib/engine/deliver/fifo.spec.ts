import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Fifo } from './fifo.js';

describe('Fifo', () => {
  it('gives what it was given, in order, like an array', () => {
    const operations = fc.array(
      fc.oneof(
        { weight: 3, arbitrary: fc.constant('push' as const) },
        { weight: 2, arbitrary: fc.constant('shift' as const) },
        { weight: 1, arbitrary: fc.constant('burst' as const) },
        { weight: 1, arbitrary: fc.constant('drain' as const) },
      ),
    );
    fc.assert(
      fc.property(operations, (list) => {
        const fifo = new Fifo<number>();
        const model: number[] = [];
        let next = 0;
        const push = (): void => {
          next += 1;
          fifo.push(next);
          model.push(next);
        };
        const shift = (): void => {
          if (fifo.shift() !== model.shift()) throw new Error('out of order');
        };
        for (const operation of list) {
          if (operation === 'push') push();
          else if (operation === 'shift') shift();
          // Enough to make it throw away what was taken.
          else if (operation === 'burst') for (let i = 0; i < 900; i++) push();
          else for (let i = 0; i < 1_000; i++) shift();
          expect(fifo.length).toBe(model.length);
        }
      }),
      { numRuns: 20 },
    );
  });

  it('is empty after clear', () => {
    const fifo = new Fifo<number>();
    fifo.push(1);
    fifo.push(2);
    fifo.shift();
    fifo.clear();
    expect(fifo.length).toBe(0);
    expect(fifo.shift()).toBeUndefined();
    fifo.push(3);
    expect(fifo.shift()).toBe(3);
  });
});
