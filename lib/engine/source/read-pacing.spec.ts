import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  DENSE_TURNS,
  densityAfter,
  type ReadingTurn,
  WORTHWHILE_BYTES,
} from './read-pacing.js';

const DENSE: ReadingTurn = { bytes: 100, waitedMs: 0.2 };
const RICH: ReadingTurn = { bytes: WORTHWHILE_BYTES, waitedMs: 0.2 };
const LATE: ReadingTurn = { bytes: 1_000_000, waitedMs: 3.1 };

function densityOf(turns: readonly ReadingTurn[]): number {
  return turns.reduce(densityAfter, 0);
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
    expect(densityOf(times(63, DENSE))).toBeLessThan(DENSE_TURNS);
    expect(densityOf(times(64, DENSE))).toBe(DENSE_TURNS);
  });

  it('starts to count anew after a wait', () => {
    const turns = [...times(63, DENSE), LATE];
    expect(densityOf(turns)).toBe(1);
    expect(densityOf([...turns, ...times(63, DENSE)])).toBe(DENSE_TURNS);
  });

  it('takes a wait of 3 ms as close', () => {
    expect(densityOf(times(64, { bytes: 1, waitedMs: 3 }))).toBe(DENSE_TURNS);
  });

  it('goes on while pauses bring enough, and ends with the first that does not', () => {
    const paced = [...times(64, DENSE), ...times(1_000, RICH)];
    expect(densityOf(paced)).toBe(DENSE_TURNS);
    const poor = { ...RICH, bytes: WORTHWHILE_BYTES - 1 };
    expect(densityOf([...paced, poor])).toBe(0);
  });

  it('ends when data comes late, however much', () => {
    expect(densityOf([...times(64, DENSE), LATE])).toBe(1);
  });

  it('never paces unless the last 64 turns were close to each other', () => {
    fc.assert(
      fc.property(fc.array(turn, { maxLength: 300 }), (turns) => {
        const late = turns
          .slice(-DENSE_TURNS + 1)
          .some(({ waitedMs }) => waitedMs > 3);
        fc.pre(late || turns.length < DENSE_TURNS);
        expect(densityOf(turns)).toBeLessThan(DENSE_TURNS);
      }),
    );
  });

  it('never paces again within 63 turns after a pause that was not worth it', () => {
    fc.assert(
      fc.property(
        fc.nat({ max: WORTHWHILE_BYTES - 1 }),
        fc.array(turn, { maxLength: DENSE_TURNS - 1 }),
        (bytes, turns) => {
          const ended = densityAfter(DENSE_TURNS, { bytes, waitedMs: 0 });
          expect(turns.reduce(densityAfter, ended)).toBeLessThan(DENSE_TURNS);
        },
      ),
    );
  });

  it('paces any dense stream from its 64th turn on, as long as it stays rich', () => {
    const rich = fc.record({
      bytes: fc.integer({ min: WORTHWHILE_BYTES, max: 4_000_000 }),
      waitedMs: fc.double({ min: 0, max: 3, noNaN: true }),
    });
    fc.assert(
      fc.property(
        fc.array(rich, { minLength: DENSE_TURNS, maxLength: 300 }),
        (turns) => {
          expect(densityOf(turns)).toBe(DENSE_TURNS);
        },
      ),
    );
  });
});
