import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  DENSE_TURNS,
  EAGER,
  FULL_TURN_BYTES,
  isPaced,
  type Pace,
  paceAfter,
  type ReadingTurn,
  restIsDue,
  WORTHWHILE_BYTES,
} from './read-pacing.js';

/** One that comes with others like it at 10 MB a second. */
const DENSE: ReadingTurn = { bytes: 1_000, waitedMs: 0.05, ms: 0.1 };
/** A thousand transactions a second. */
const THIN: ReadingTurn = { bytes: 300, waitedMs: 0.9, ms: 1 };
/** What a rest gathers at 10 MB a second. */
const RICH: ReadingTurn = { bytes: 10_000, waitedMs: 0.05, ms: 0.1 };
const FULL: ReadingTurn = { bytes: FULL_TURN_BYTES, waitedMs: 0, ms: 1 };
const LATE: ReadingTurn = { bytes: 1_000_000, waitedMs: 3.1, ms: 3.2 };

function after(turns: readonly ReadingTurn[]): Pace {
  return turns.reduce(paceAfter, EAGER);
}

function times(count: number, turn: ReadingTurn): ReadingTurn[] {
  return Array.from({ length: count }, () => turn);
}

/** Whether reading rested after one of these turns. */
function rested(turns: readonly ReadingTurn[]): boolean {
  let pace = EAGER;
  return turns.some((turn) => restIsDue((pace = paceAfter(pace, turn))));
}

const turn = fc
  .record({
    bytes: fc.nat({ max: 200_000 }),
    waitedMs: fc.double({ min: 0, max: 6, noNaN: true }),
    workedMs: fc.double({ min: 0, max: 6, noNaN: true }),
  })
  .map(({ bytes, waitedMs, workedMs }) => ({
    bytes,
    waitedMs,
    ms: waitedMs + workedMs,
  }));

describe('read pacing', () => {
  it('begins after 64 turns with data close to each other', () => {
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
    const slow = { bytes: 20_000, waitedMs: 3, ms: 3.1 };
    expect(restIsDue(after(times(64, slow)))).toBe(true);
  });

  it('never begins where a rest would gather too little', () => {
    expect(rested(times(10_000, THIN))).toBe(false);
    const justTooThin = { bytes: WORTHWHILE_BYTES - 1, waitedMs: 0.9, ms: 1 };
    expect(rested(times(10_000, justTooThin))).toBe(false);
    const enough = { ...justTooThin, bytes: WORTHWHILE_BYTES };
    expect(rested(times(64, enough))).toBe(true);
  });

  it('rests after every turn that brings enough', () => {
    for (const count of [1, 2, 1_000]) {
      const turns = [...times(64, DENSE), ...times(count, RICH)];
      expect(restIsDue(after(turns))).toBe(true);
    }
  });

  it('does not rest after a full turn, and does again when one is not full', () => {
    expect(rested(times(1_000, FULL))).toBe(false);
    const turns = [...times(64, DENSE), ...times(100, FULL)];
    expect(isPaced(after(turns))).toBe(true);
    expect(restIsDue(after(turns))).toBe(false);
    expect(restIsDue(after([...turns, DENSE]))).toBe(true);
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
          const poor = { bytes: Math.floor(bytes / 2), waitedMs: 0, ms: 0.1 };
          const ended = after([...times(64, DENSE), poor, poor]);
          expect(isPaced(turns.reduce(paceAfter, ended))).toBe(false);
        },
      ),
    );
  });

  it('rests from the 64th turn of any dense stream on, as long as it stays rich', () => {
    const rich = fc
      .record({
        bytes: fc.integer({
          min: WORTHWHILE_BYTES * 4,
          max: FULL_TURN_BYTES - 1,
        }),
        waitedMs: fc.double({ min: 0, max: 3, noNaN: true }),
      })
      .map((one) => ({ ...one, ms: one.waitedMs + 1 }));
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
