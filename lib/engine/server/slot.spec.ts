import { describe, expect, it } from 'vitest';
import { judgeSlot, type SlotPlace, type SlotRow } from './slot.js';

const PLACE: SlotPlace = {
  database: 'shop',
  plugin: 'pgoutput',
  inRecovery: false,
};

const USABLE: SlotRow = {
  slot_type: 'logical',
  plugin: 'pgoutput',
  database: 'shop',
  temporary: false,
  active: false,
  two_phase: false,
  confirmed_flush_lsn: '0/16E3778',
  wal_status: 'reserved',
};

describe('judgeSlot', () => {
  it('finds no slot', () => {
    expect(judgeSlot(null, PLACE)).toEqual({ kind: 'absent' });
  });

  it.each([
    ['as PostgreSQL 15 shows it', {}],
    ['as 16 shows it', { conflicting: false }],
    [
      'as 17 and 18 show it',
      {
        conflicting: false,
        invalidation_reason: null,
        failover: true,
        synced: false,
      },
    ],
    ['that was synchronized before the promotion', { synced: true }],
    ['though it holds back much WAL', { wal_status: 'extended' }],
    ['though it is close to being lost', { wal_status: 'unreserved' }],
  ])('takes a whole slot %s', (_name, columns) => {
    expect(judgeSlot({ ...USABLE, ...columns }, PLACE)).toEqual({
      kind: 'usable',
      confirmedFlush: 0x16e3778n,
      failoverLacking: false,
    });
  });

  it.each([
    [{ failover: false, active: false }, true],
    [{ failover: false, active: true }, false],
    [{ failover: true, active: false }, false],
  ])('tells whether failover lacks and can be set: %j', (columns, lacking) => {
    expect(judgeSlot({ ...USABLE, ...columns }, PLACE)).toMatchObject({
      kind: 'usable',
      failoverLacking: lacking,
    });
  });

  it('waits for a slot that is still being created', () => {
    const row = { ...USABLE, active: true, confirmed_flush_lsn: null };
    expect(judgeSlot(row, PLACE)).toEqual({ kind: 'unfinished' });
  });

  it.each([null, '', '0/XYZ', '16E3778'])(
    'invents no position for a slot that nobody creates and that is at %j (A16)',
    (lsn) => {
      const row = { ...USABLE, confirmed_flush_lsn: lsn };
      expect(judgeSlot(row, PLACE)).toEqual({ kind: 'unplaced' });
    },
  );

  it.each([{}, { temporary: true }, { confirmed_flush_lsn: null }])(
    'sees the copy of a slot on a standby that is not promoted: %j',
    (columns) => {
      const row = { ...USABLE, ...columns, synced: true };
      const standby = { ...PLACE, inRecovery: true };
      expect(judgeSlot(row, standby)).toEqual({ kind: 'unpromoted' });
      expect(judgeSlot({ ...USABLE, synced: false }, standby)).toMatchObject({
        kind: 'usable',
      });
    },
  );

  it.each([
    [{ slot_type: 'physical', plugin: null, database: null }, 'not logical'],
    [{ database: 'other' }, 'another database'],
    [{ plugin: 'test_decoding' }, 'another output plugin'],
    [{ temporary: true }, 'temporary'],
    [{ two_phase: true }, 'prepared transactions'],
  ])('refuses a slot of another kind: %j', (columns, detail) => {
    const verdict = judgeSlot({ ...USABLE, ...columns }, PLACE);
    expect(verdict).toMatchObject({ kind: 'halt', code: 'slot/not_usable' });
    expect(JSON.stringify(verdict)).toContain(detail);
  });

  it.each([
    [{ wal_status: 'lost' }, 'slot_invalidated/wal_lost'],
    [
      { wal_status: 'lost', confirmed_flush_lsn: null },
      'slot_invalidated/wal_lost',
    ],
    [
      { wal_status: 'lost', conflicting: true, restart_lsn: '0/16E3700' },
      'slot_invalidated/conflict',
    ],
    [
      { wal_status: 'lost', conflicting: true, restart_lsn: null },
      'slot_invalidated/wal_lost',
    ],
  ])('refuses a slot that the server has invalidated: %j', (columns, code) => {
    expect(judgeSlot({ ...USABLE, ...columns }, PLACE)).toMatchObject({
      kind: 'halt',
      code,
    });
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
    expect(judgeSlot(row, PLACE)).toMatchObject({ code });
  });
});
