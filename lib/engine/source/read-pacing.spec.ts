import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  DENSE_TURNS,
  EAGER,
  isPaced,
  type Pace,
  paceAfter,
  type ReadingTurn,
  restIsDue,
  WORTHWHILE_BYTES,
} from './read-pacing.js';

const DENSE: ReadingTurn = { bytes: 100, waitedMs: 0.2 };
const RICH: ReadingTurn = { bytes: WORTHWHILE_BYTES, waitedMs: 0.2 };
const LATE: ReadingTurn = { bytes: 1_000_000, waitedMs: 3.1 };

function after(turns: readonly ReadingTurn[]): Pace {
  return turns.reduce(paceAfter, EAGER);
}

function times(count: number, turn: ReadingTurn): ReadingTurn[] {
  return Array.from({ length: count }, () => turn);
}

const turn = fc.record({
  bytes: fc.nat({ max: 200_000 }),
  waitedMs: fc.double({ min: 0, max: 6, noNaN: true }),
});

describe('read pacing', () => {
  it('begins after 64 turns with data close to each other, however little each brings', () => {
    expect(isPaced(after(times(63, DENSE)))).toBe(false);
    expect(restIsDue(after(times(63, DENSE)))).toBe(false);
    expect(restIsDue(after(times(64, DENSE)))).toBe(true);
  });

  it('starts to count anew after a wait', () => {
    const turns = [...times(63, DENSE), LATE, ...times(62, DENSE)];
    expect(isPaced(after(turns))).toBe(false);
    expect(restIsDue(after([...turns, DENSE]))).toBe(true);
  });

  it('takes a wait of 3 ms as close', () => {
    expect(restIsDue(after(times(64, { bytes: 1, waitedMs: 3 })))).toBe(true);
  });

  it('rests after every turn that brings enough', () => {
    for (const count of [1, 2, 1_000]) {
      const turns = [...times(64, DENSE), ...times(count, RICH)];
      expect(restIsDue(after(turns))).toBe(true);
    }
  });

  it('gives a rest two turns to bring what it gathered', () => {
    const paced = after([...times(64, DENSE), RICH]);
    const first = paceAfter(paced, DENSE);
    expect(isPaced(first)).toBe(true);
    expect(restIsDue(first)).toBe(false);
    const little = WORTHWHILE_BYTES - DENSE.bytes;
    expect(restIsDue(paceAfter(first, { ...DENSE, bytes: little }))).toBe(true);
    expect(paceAfter(first, { ...DENSE, bytes: little - 1 })).toEqual(EAGER);
  });

  it('ends when data comes late, however much', () => {
    expect(isPaced(after([...times(64, DENSE), LATE]))).toBe(false);
    expect(isPaced(after([...times(64, DENSE), DENSE, LATE]))).toBe(false);
  });

  it('never rests unless the turns since the last wait are 64 or more', () => {
    fc.assert(
      fc.property(fc.array(turn, { maxLength: 300 }), (turns) => {
        const lastWait = turns.findLastIndex(({ waitedMs }) => waitedMs > 3);
        fc.pre(turns.length - Math.max(0, lastWait) < DENSE_TURNS);
        expect(isPaced(after(turns))).toBe(false);
      }),
    );
  });

  it('never rests again within 63 turns after a rest that was not worth it', () => {
    fc.assert(
      fc.property(
        fc.nat({ max: WORTHWHILE_BYTES - 1 }),
        fc.array(turn, { maxLength: DENSE_TURNS - 1 }),
        (bytes, turns) => {
          const poor = { bytes: Math.floor(bytes / 2), waitedMs: 0 };
          const ended = after([...times(64, DENSE), poor, poor]);
          expect(isPaced(turns.reduce(paceAfter, ended))).toBe(false);
        },
      ),
    );
  });

  it('rests from the 64th turn of any dense stream on, as long as it stays rich', () => {
    const rich = fc.record({
      bytes: fc.integer({ min: WORTHWHILE_BYTES, max: 4_000_000 }),
      waitedMs: fc.double({ min: 0, max: 3, noNaN: true }),
    });
    fc.assert(
      fc.property(
        fc.array(rich, { minLength: DENSE_TURNS, maxLength: 300 }),
        (turns) => {
          expect(restIsDue(after(turns))).toBe(true);
        },
      ),
    );
  });
});
