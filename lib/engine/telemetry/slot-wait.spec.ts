import { describe, expect, it } from 'vitest';
import { describeWait, isSameWait, type SlotWait } from './slot-wait.js';

const wait: SlotWait = {
  for: 'transaction',
  pid: 7,
  name: 'batch',
  ageSeconds: 30,
  since: '2026-01-02T03:04:05.000Z',
};

describe('describeWait', () => {
  it.each<[Partial<SlotWait>, string]>([
    [
      {},
      'the transaction of process 7 of the server (application_name batch), which is 30 s old',
    ],
    [
      { name: null, ageSeconds: null },
      'the transaction of process 7 of the server',
    ],
    [
      { for: 'prepared_transaction', pid: null, name: 'stuck' },
      'the prepared transaction stuck, which is 30 s old',
    ],
    [
      { for: 'wal', pid: null, name: null, ageSeconds: null },
      'a record of the primary: run pg_log_standby_snapshot() there',
    ],
  ])('says of %j: %s', (part, text) => {
    expect(describeWait({ ...wait, ...part })).toBe(
      `the creation of the slot waits for ${text}`,
    );
  });
});

describe('isSameWait', () => {
  it('looks at who is waited for, and not at how long', () => {
    expect(isSameWait(wait, { ...wait, ageSeconds: 35 })).toBe(true);
    expect(isSameWait(wait, { ...wait, pid: 8 })).toBe(false);
    expect(isSameWait(wait, { ...wait, for: 'wal' })).toBe(false);
    expect(isSameWait(wait, { ...wait, name: 'other' })).toBe(false);
    expect(isSameWait(wait, null)).toBe(false);
    expect(isSameWait(null, null)).toBe(true);
  });
});
