import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  nextXid,
  sees,
  type VisibleTransactions,
  widenXid,
} from './visibility.js';

function visible(
  xmin: bigint,
  xmax: bigint,
  inProgress: readonly bigint[] = [],
  inRecovery = false,
): VisibleTransactions {
  return { xmin, xmax, inProgress: new Set(inProgress), inRecovery };
}

const EPOCH = 2n ** 32n;

describe('a snapshot', () => {
  it('sees what had ended, and neither what was in progress nor what came later', () => {
    const snapshot = visible(10n, 20n, [10n, 14n]);
    expect([9, 10, 11, 14, 19].map((xid) => sees(snapshot, xid))).toEqual([
      true,
      false,
      true,
      false,
      true,
    ]);
    expect(sees(snapshot, 20)).toBe(false);
    expect(sees(snapshot, 21)).toBe(false);
  });

  it('of a server in recovery sees nothing from its first transaction in progress on', () => {
    const snapshot = visible(10n, 20n, [], true);
    expect([9, 10, 15, 20].map((xid) => sees(snapshot, xid))).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });

  it('sees across the end of 32 bits, from both sides', () => {
    const behind = visible(EPOCH - 2n, EPOCH + 5n, [EPOCH - 2n, EPOCH + 3n]);
    expect(sees(behind, 0xffff_fffd)).toBe(true);
    expect(sees(behind, 0xffff_fffe)).toBe(false);
    expect(sees(behind, 0xffff_ffff)).toBe(true);
    expect(sees(behind, 3)).toBe(false);
    expect(sees(behind, 4)).toBe(true);
    expect(sees(behind, 5)).toBe(false);
    const before = visible(EPOCH - 5n, EPOCH - 5n);
    expect(sees(before, 0xffff_fffa)).toBe(true);
    expect(sees(before, 3)).toBe(false);
  });

  it('does not tell the next transaction id; age() does', () => {
    // 750 has written its commit, and waits; nothing has ended since.
    expect(nextXid(751 - 3, visible(750n, 750n))).toBe(751n);
    expect(nextXid(-10 - 3, visible(EPOCH - 12n, EPOCH - 12n))).toBe(
      EPOCH - 10n,
    );
    expect(nextXid(4 - 3, visible(EPOCH - 12n, EPOCH - 12n))).toBe(EPOCH + 4n);
  });
});

it('an xid is widened to the nearest of all with its lower half', () => {
  fc.assert(
    fc.property(
      fc.bigInt({ min: 0n, max: 2n ** 63n }),
      fc.bigInt({ min: -(2n ** 31n), max: 2n ** 31n - 1n }),
      (near, distance) => {
        const id = near + distance;
        expect(widenXid(Number(BigInt.asUintN(32, id)), near)).toBe(id);
      },
    ),
  );
});
