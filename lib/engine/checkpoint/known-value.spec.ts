import { describe, expect, it } from 'vitest';
import { KnownValue } from './known-value.js';

describe('KnownValue', () => {
  it('replaces what was read', () => {
    const value = new KnownValue<string | null>(null);
    expect(value.last).toBeNull();
    expect(value.before('a')).toBeNull();
  });

  it('replaces what was written last, and when it is written again what was there before', () => {
    const value = new KnownValue<string | null>(null);
    value.wrote('a');
    expect(value.last).toBe('a');
    expect(value.before('b')).toBe('a');
    expect(value.before('a')).toBeNull();
    value.wrote('a');
    expect(value.before('a')).toBeNull();
    value.wrote('b');
    expect(value.before('b')).toBe('a');
  });

  it('stays written when it is read again, and is no second time older than that', () => {
    const value = new KnownValue('a');
    value.wrote('b');
    expect(value.settle('b')).toBe(true);
    expect(value.before('b')).toBe('b');
    expect(value.settle('a')).toBe(false);
  });

  it('is what it was when it was rolled back', () => {
    const value = new KnownValue('a');
    value.wrote('b');
    expect(value.settle('a')).toBe(true);
    expect(value.last).toBe('a');
    expect(value.before('b')).toBe('a');
    expect(value.settle('b')).toBe(false);
  });

  it('keeps what it knows when another process has written', () => {
    const value = new KnownValue('a');
    value.wrote('b');
    expect(value.settle('c')).toBe(false);
    expect(value.last).toBe('b');
    expect(value.settle('b')).toBe(true);
  });
});
