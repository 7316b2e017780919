import { describe, expect, it } from 'vitest';
import { judgeSlot, type SlotRow } from './slot.js';

const USABLE: SlotRow = {
  slot_type: 'logical',
  plugin: 'pgoutput',
  database: 'shop',
  temporary: false,
  confirmed_flush_lsn: '0/16E3778',
  wal_status: 'reserved',
};

describe('judgeSlot', () => {
  it('finds no slot', () => {
    expect(judgeSlot(null, 'shop', 'pgoutput')).toEqual({ kind: 'absent' });
  });

  it.each([
    ['as PostgreSQL 15 shows it', {}],
    ['as 16 shows it', { conflicting: false }],
    ['as 17 and 18 show it', { conflicting: false, invalidation_reason: null }],
    ['though it holds back much WAL', { wal_status: 'extended' }],
    ['though it is close to being lost', { wal_status: 'unreserved' }],
  ])('takes a whole slot %s', (_name, columns) => {
    expect(judgeSlot({ ...USABLE, ...columns }, 'shop', 'pgoutput')).toEqual({
      kind: 'usable',
      confirmedFlush: 0x16e3778n,
    });
  });

  it('waits for a slot that is still being created', () => {
    const row = { ...USABLE, confirmed_flush_lsn: null };
    expect(judgeSlot(row, 'shop', 'pgoutput')).toEqual({ kind: 'unfinished' });
  });

  it.each([
    [{ slot_type: 'physical', plugin: null, database: null }, 'not logical'],
    [{ database: 'other' }, 'another database'],
    [{ plugin: 'test_decoding' }, 'another output plugin'],
    [{ temporary: true }, 'temporary'],
  ])('refuses a slot of another kind: %j', (columns, detail) => {
    const verdict = judgeSlot({ ...USABLE, ...columns }, 'shop', 'pgoutput');
    expect(verdict).toMatchObject({ kind: 'halt', code: 'slot/not_usable' });
    expect(JSON.stringify(verdict)).toContain(detail);
  });

  it.each([
    [{ wal_status: 'lost' }, 'slot_invalidated/wal_lost'],
    [
      { wal_status: 'lost', confirmed_flush_lsn: null },
      'slot_invalidated/wal_lost',
    ],
    [{ wal_status: 'lost', conflicting: true }, 'slot_invalidated/conflict'],
  ])('refuses a slot that the server has invalidated: %j', (columns, code) => {
    expect(
      judgeSlot({ ...USABLE, ...columns }, 'shop', 'pgoutput'),
    ).toMatchObject({ kind: 'halt', code });
  });

  it.each([
    ['wal_removed', 'slot_invalidated/wal_lost'],
    ['rows_removed', 'slot_invalidated/rows_removed'],
    ['wal_level_insufficient', 'slot_invalidated/wal_level_insufficient'],
    ['idle_timeout', 'slot_invalidated/invalidated'],
  ])('takes the reason %s before all else', (reason, code) => {
    const row = {
      ...USABLE,
      wal_status: 'lost',
      conflicting: true,
      invalidation_reason: reason,
    };
    expect(judgeSlot(row, 'shop', 'pgoutput')).toMatchObject({ code });
  });
});
