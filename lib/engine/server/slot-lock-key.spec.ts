import { describe, expect, it } from 'vitest';
import { LOCK_CLASS, lockKey, lockRows } from './slot-lock-key.js';

describe('the key of the lock on a slot', () => {
  it('never changes, so that releases understand each other', () => {
    expect(LOCK_CLASS).toBe(1_919_250_540);
    expect(lockKey('orders')).toBe(471_239_387);
    expect(lockKey('audit')).toBe(-1_205_913_696);
  });

  it('is a signed integer, which pg_locks shows without its sign', () => {
    const names = Array.from({ length: 200 }, (_, index) => `slot_${index}`);
    const keys = names.map((name) => lockKey(name));
    expect(new Set(keys).size).toBe(names.length);
    expect(keys.some((key) => key < 0)).toBe(true);
    for (const key of keys) expect(key).toBe(key | 0);
    for (const name of names)
      expect(lockRows(name)).toMatch(/classid = \d+ and objid = \d+$/);
  });
});
