import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  DENSE_RATE_BYTES,
  DENSE_TURNS,
  EAGER,
  isPaced,
  LONGEST_REST_MS,
  type Pace,
  paceAfter,
  type ReadingTurn,
  WORTHWHILE_BYTES,
} from './read-pacing.js';

/** One that comes with others like it at 10 MB a second. */
const DENSE: ReadingTurn = { bytes: 1_000, waitedMs: 0.05, ms: 0.1 };
/** A thousand transactions a second. */
const THIN: ReadingTurn = { bytes: 300, waitedMs: 0.9, ms: 1 };
/** What a rest of 16 ms gathers at 10 MB a second. */
const RICH: ReadingTurn = { bytes: 160_000, waitedMs: 0.05, ms: 2 };
const LATE: ReadingTurn = { bytes: 1_000_000, waitedMs: 3.1, ms: 3.2 };

function after(turns: readonly ReadingTurn[]): Pace {
  return turns.reduce(paceAfter, EAGER);
}

function times(count: number, turn: ReadingTurn): ReadingTurn[] {
  return Array.from({ length: count }, () => turn);
}

/** Whether reading rests after the last of these turns. */
function rests(turns: readonly ReadingTurn[]): boolean {
  return after(turns).restMs > 0;
}

/** Whether it rested after any of them. */
function rested(turns: readonly ReadingTurn[]): boolean {
  let pace = EAGER;
  return turns.some((turn) => (pace = paceAfter(pace, turn)).restMs > 0);
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
    expect(rested(times(63, DENSE))).toBe(false);
    expect(rests(times(64, DENSE))).toBe(true);
  });

  it('starts to count anew after a wait', () => {
    const turns = [...times(63, DENSE), LATE, ...times(62, DENSE)];
    expect(isPaced(after(turns))).toBe(false);
    expect(rests([...turns, DENSE])).toBe(true);
  });

  it('takes a wait of 3 ms as close', () => {
    const slow = { bytes: 20_000, waitedMs: 3, ms: 3.1 };
    expect(rests(times(64, slow))).toBe(true);
  });

  it('never begins where a rest would gather too little', () => {
    expect(rested(times(10_000, THIN))).toBe(false);
    const justTooThin = { bytes: DENSE_RATE_BYTES - 1, waitedMs: 0.9, ms: 1 };
    expect(rested(times(10_000, justTooThin))).toBe(false);
    const enough = { ...justTooThin, bytes: DENSE_RATE_BYTES };
    expect(rests(times(64, enough))).toBe(true);
  });

  it('rests as long as it takes to gather a megabyte at the rate seen, 1 to 16 ms', () => {
    const restAt = (bytesInMs: number): number =>
      after(times(64, { bytes: bytesInMs, waitedMs: 0, ms: 1 })).restMs;
    expect(restAt(DENSE_RATE_BYTES)).toBe(16);
    expect(restAt(64 * 1024)).toBe(16);
    expect(restAt(128 * 1024)).toBe(8);
    expect(restAt(512 * 1024)).toBe(2);
    expect(restAt(4 * 1024 * 1024)).toBe(1);
  });

  it('goes on while turns are rich, and rests when one is not', () => {
    const turns = [...times(64, DENSE), ...times(100, RICH)];
    expect(isPaced(after(turns))).toBe(true);
    expect(rests(turns)).toBe(false);
    expect(rests([...turns, { ...RICH, bytes: RICH.bytes / 2 }])).toBe(false);
    expect(rests([...turns, { ...RICH, bytes: RICH.bytes / 2 - 1 }])).toBe(
      true,
    );
    expect(rests([...turns, DENSE])).toBe(true);
  });

  it('looks for more after a first turn that brings but one window', () => {
    const window = { bytes: 40_000, waitedMs: 0.1, ms: 0.5 };
    const paced = after([...times(64, DENSE), window]);
    expect(paced.restMs).toBe(0);
    expect(paceAfter(paced, RICH).restMs).toBe(0);
    expect(paceAfter(paced, DENSE).restMs).toBeGreaterThan(0);
  });

  it('gives a rest two turns to bring what it gathered', () => {
    const paced = after(times(64, DENSE));
    const first = paceAfter(paced, DENSE);
    expect(isPaced(first)).toBe(true);
    expect(first.restMs).toBe(0);
    const little = WORTHWHILE_BYTES - DENSE.bytes;
    expect(
      paceAfter(first, { ...DENSE, bytes: little }).restMs,
    ).toBeGreaterThan(0);
    expect(paceAfter(first, { ...DENSE, bytes: little - 1 })).toEqual(EAGER);
  });

  it('ends when data comes late, however much', () => {
    expect(isPaced(after([...times(64, DENSE), LATE]))).toBe(false);
    expect(isPaced(after([...times(64, DENSE), RICH, LATE]))).toBe(false);
  });

  it('never rests unless the turns since the last wait are 64 or more, and never long', () => {
    fc.assert(
      fc.property(fc.array(turn, { maxLength: 300 }), (turns) => {
        let pace = EAGER;
        let close = 0;
        for (const one of turns) {
          pace = paceAfter(pace, one);
          close = one.waitedMs > 3 ? 1 : close + 1;
          if (pace.restMs > 0)
            expect(close).toBeGreaterThanOrEqual(DENSE_TURNS);
          expect(pace.restMs).toBeLessThanOrEqual(LONGEST_REST_MS);
        }
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
});
