import { describe, expect, it } from 'vitest';
import { RequiredTransactions } from './required-transactions.js';
import { parseSnapshot } from './snapshot-text.js';
import type { VisibleTransactions } from './visibility.js';

function snapshot(text: string): VisibleTransactions {
  const visible = parseSnapshot(text, false);
  if (visible === null) throw new Error('no snapshot');
  return visible;
}

describe('Required transactions', () => {
  it('are seen by a snapshot that sees each of them', () => {
    const required = new RequiredTransactions();
    expect(required.seenBy(snapshot('1:1:'))).toBe(true);
    required.add(12);
    required.add(15);
    expect(required.seenBy(snapshot('10:20:10,12'))).toBe(false);
    expect(required.seenBy(snapshot('10:15:10'))).toBe(false);
    expect(required.seenBy(snapshot('10:20:10'))).toBe(true);
  });

  it('are forgotten once a snapshot sees them', () => {
    const required = new RequiredTransactions();
    required.add(12);
    required.add(15);
    required.forget(snapshot('10:20:10,12'));
    expect([required.has(12), required.has(15)]).toEqual([true, false]);
  });

  it('are all up to the last when there are many, around 2^32 too', () => {
    const required = new RequiredTransactions();
    for (let xid = 2 ** 32 - 600; xid < 2 ** 32; xid++) required.add(xid);
    for (let xid = 3; xid < 700; xid++) required.add(xid);
    const last = 2n ** 32n + 699n;
    expect(required.has(50)).toBe(false);
    expect(required.seenBy(snapshot(`${last}:${last}:`))).toBe(false);
    const all = snapshot(`${last + 1n}:${last + 1n}:`);
    expect(required.seenBy(all)).toBe(true);
    // One that has nothing to do with them is waited for as well: no more is known.
    const early = snapshot(`${2n ** 32n}:${last + 1n}:${2n ** 32n}`);
    expect(required.seenBy(early)).toBe(false);
    required.forget(all);
    expect(required.seenBy(snapshot('1:1:'))).toBe(true);
  });
});
