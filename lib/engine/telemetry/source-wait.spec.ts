import { describe, expect, it } from 'vitest';
import { describeWait, isSameWait, type SourceWait } from './source-wait.js';

const wait: SourceWait = {
  what: 'slot',
  for: 'transaction',
  pid: 7,
  name: 'batch',
  ageSeconds: 30,
  since: '2026-01-02T03:04:05.000Z',
};

describe('describeWait', () => {
  it.each<[Partial<SourceWait>, string]>([
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
    [
      { for: 'lock' },
      'a lock on a table, and so for the transaction of process 7 of the server (application_name batch), which is 30 s old',
    ],
    [{ pid: null, name: null }, 'a transaction of another server'],
  ])('says of %j: %s', (part, text) => {
    expect(describeWait({ ...wait, ...part })).toBe(
      `the creation of the slot waits for ${text}`,
    );
  });
});

it('says that copying waits', () => {
  expect(describeWait({ ...wait, what: 'copy', ageSeconds: null })).toBe(
    'copying rows waits for the transaction of process 7 of the server (application_name batch)',
  );
});

describe('isSameWait', () => {
  it('looks at who is waited for, and not at how long', () => {
    expect(isSameWait(wait, { ...wait, ageSeconds: 35 })).toBe(true);
    expect(isSameWait(wait, { ...wait, pid: 8 })).toBe(false);
    expect(isSameWait(wait, { ...wait, for: 'wal' })).toBe(false);
    expect(isSameWait(wait, { ...wait, name: 'other' })).toBe(false);
    expect(isSameWait(wait, { ...wait, what: 'copy' })).toBe(false);
    expect(isSameWait(wait, null)).toBe(false);
    expect(isSameWait(null, null)).toBe(true);
  });
});
