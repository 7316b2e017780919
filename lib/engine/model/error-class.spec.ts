import { describe, expect, it } from 'vitest';
import { errorClass } from './error-class.js';

describe('errorClass', () => {
  it('names the class and the SQLSTATE, never the message', () => {
    class QueryFailed extends Error {
      readonly code = '23505';
    }
    expect(errorClass(new TypeError('secret'))).toBe('TypeError');
    expect(errorClass(new QueryFailed('secret'))).toBe(
      'QueryFailed (SQLSTATE 23505)',
    );
  });

  it('names the type of what is no error', () => {
    expect(errorClass('secret')).toBe('string');
    expect(errorClass(null)).toBe('object');
    expect(errorClass(undefined)).toBe('undefined');
  });

  it('answers also for what throws when it is looked at', () => {
    const secret = (): never => {
      throw new Error('secret');
    };
    const bare = Object.defineProperty(new Error('secret'), 'constructor', {
      value: undefined,
    });
    const trap = new Proxy(new Error('secret'), { get: secret });
    expect([errorClass(bare), errorClass(trap)]).toEqual(['Error', 'Error']);
  });

  it('prints no class name and no code that could carry a value', () => {
    const hostile = class extends Error {
      readonly code = 'the secret';
    };
    Object.defineProperty(hostile, 'name', { value: 'the secret' });
    expect(errorClass(new hostile())).toBe('Error');
  });
});
