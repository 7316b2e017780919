import { describe, expect, it } from 'vitest';
import { ConnectionFault } from '../model/connection-fault.js';
import { NoSchemaError } from './checkpoint-location.js';
import { judgeStoreError } from './store-faults.js';

const SECRET = 'planted-secret';

function serverError(code: string): Error {
  return Object.assign(new Error(SECRET), { code, severity: 'ERROR' });
}

describe('judgeStoreError', () => {
  it.each([
    ['42501', 'a missing privilege'],
    ['42P01', 'a table that was dropped'],
    ['42703', 'a column that was dropped'],
    ['3D000', 'a missing database'],
    ['3F000', 'a missing schema'],
  ])('takes %s, %s, for permanent', (code) => {
    const { permanent, reason } = judgeStoreError(serverError(code));
    expect(permanent).toBe(true);
    expect(reason).toContain(code);
    expect(reason).not.toContain(SECRET);
  });

  it.each([
    ['08006', 'a lost connection'],
    ['23514', 'a check constraint'],
    ['25006', 'a server that is read only for now'],
    ['28P01', 'a rotated password'],
    ['3B001', 'what only looks like a neighbour'],
    ['40001', 'a serialization failure'],
    ['53100', 'a full disk'],
    ['57P01', 'a server that shuts down'],
    ['57014', 'a cancelled statement'],
  ])('takes %s, %s, for one that may pass', (code) => {
    const { permanent, reason } = judgeStoreError(serverError(code));
    expect(permanent).toBe(false);
    expect(reason).toContain(code);
    expect(reason).not.toContain(SECRET);
  });

  it('names the class of what is no answer of a server', () => {
    expect(judgeStoreError(new TypeError(SECRET))).toEqual({
      reason: 'connection lost (TypeError)',
      permanent: false,
    });
    expect(
      judgeStoreError(
        Object.assign(new Error(SECRET), { code: 'ECONNREFUSED' }),
      ),
    ).toEqual({ reason: 'connection lost (ECONNREFUSED)', permanent: false });
    expect(judgeStoreError(new ConnectionFault('told'))).toEqual({
      reason: 'told',
      permanent: false,
    });
  });

  it('takes a search path without a schema for permanent', () => {
    expect(judgeStoreError(new NoSchemaError()).permanent).toBe(true);
  });
});
