import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { SnapshotRecord } from './snapshot-record.js';

let events: unknown[];
let record: SnapshotRecord;

beforeEach(() => {
  vi.useFakeTimers({ now: new Date('2026-01-02T03:04:05.000Z') });
  events = [];
  record = new SnapshotRecord((event, payload) =>
    events.push([event, payload]),
  );
});
afterEach(() => {
  const timers = vi.getTimerCount();
  vi.useRealTimers();
  if (timers > 0) throw new Error('A timer is left.');
});

function tables(...estimates: (number | null)[]) {
  return estimates.map((estimatedRows, index) => ({
    name: `public.t${index + 1}`,
    estimatedRows,
  }));
}

/** Copies a page each second. */
function copy(table: string, pages: number, rows = 1_000): void {
  for (let page = 0; page < pages; page += 1) {
    vi.advanceTimersByTime(1_000);
    record.rows(table, rows);
  }
}

describe('SnapshotRecord', () => {
  it('knows nothing before a copy begins', () => {
    record.rows('public.t1', 1);
    record.tableDone('public.t1');
    record.tableAgain('public.t1');
    record.interrupted();
    record.complete();
    expect(record.status).toBeNull();
    expect(events).toEqual([]);
  });

  it('tells how far it is, how fast, and how long it still takes', () => {
    record.begin('initial', tables(8_000, 12_000), []);
    expect(record.status).toEqual({
      mode: 'initial',
      state: 'copying',
      tablesDone: 0,
      tablesTotal: 2,
      tables: [],
      rows: 0,
      estimatedRows: 20_000,
      rowsPerSecond: 0,
      secondsRemaining: null,
      startedAt: '2026-01-02T03:04:05.000Z',
    });
    copy('public.t1', 4);
    expect(record.status).toMatchObject({
      tables: ['public.t1'],
      rows: 4_000,
      estimatedRows: 20_000,
      rowsPerSecond: 1_000,
      secondsRemaining: 16,
    });
  });

  it('follows several tables at a time', () => {
    record.begin('initial', tables(3_000, 3_000, 3_000), []);
    vi.advanceTimersByTime(1_000);
    record.rows('public.t3', 1_000);
    record.rows('public.t1', 2_000);
    expect(record.status).toMatchObject({
      tables: ['public.t1', 'public.t3'],
      rows: 3_000,
      rowsPerSecond: 3_000,
      secondsRemaining: 2,
    });
    record.rows('public.t1', 1_000);
    record.tableDone('public.t1');
    expect(record.status).toMatchObject({
      tablesDone: 1,
      tables: ['public.t3'],
    });
  });

  it('lets an estimate that is overtaken grow, and counts a table that is done with what it had', () => {
    record.begin('initial', tables(1_000, 5_000), []);
    copy('public.t1', 3);
    expect(record.status).toMatchObject({
      rows: 3_000,
      estimatedRows: 8_000,
      secondsRemaining: 5,
    });
    record.tableDone('public.t1');
    copy('public.t2', 2);
    record.tableDone('public.t2');
    expect(record.status).toMatchObject({
      rows: 5_000,
      estimatedRows: 5_000,
      secondsRemaining: 0,
    });
  });

  it('knows no end where there are more rows than the source thought', () => {
    record.begin('initial', tables(1_000), []);
    copy('public.t1', 2);
    expect(record.status?.secondsRemaining).toBeNull();
  });

  it('does not guess while a table has no statistics', () => {
    record.begin('initial', tables(null, 4_000), []);
    copy('public.t1', 2);
    expect(record.status).toMatchObject({
      rows: 2_000,
      estimatedRows: null,
      rowsPerSecond: 1_000,
      secondsRemaining: null,
    });
    record.tableDone('public.t1');
    expect(record.status).toMatchObject({
      estimatedRows: 6_000,
      secondsRemaining: 4,
    });
  });

  it('counts what an earlier process has copied among the tables, and not among the rows', () => {
    record.begin('incremental', tables(9_000, 4_000), ['public.t1']);
    copy('public.t2', 2);
    expect(record.status).toMatchObject({
      tablesDone: 1,
      tablesTotal: 2,
      rows: 2_000,
      estimatedRows: 4_000,
      secondsRemaining: 2,
    });
  });

  it('goes on counting where an incremental copy goes on', () => {
    record.begin('incremental', tables(2_000, 4_000), []);
    copy('public.t1', 2);
    record.tableDone('public.t1');
    copy('public.t2', 1);
    record.interrupted();
    expect(record.status).toMatchObject({
      state: 'interrupted',
      tables: [],
      rows: 3_000,
      rowsPerSecond: 0,
      secondsRemaining: null,
    });
    vi.advanceTimersByTime(60_000);
    record.begin('incremental', tables(2_000, 4_000), ['public.t1']);
    copy('public.t2', 1);
    expect(record.status).toMatchObject({
      state: 'copying',
      tablesDone: 1,
      rows: 4_000,
      estimatedRows: 6_000,
      rowsPerSecond: 1_000,
      secondsRemaining: 2,
      startedAt: '2026-01-02T03:04:05.000Z',
    });
  });

  it.each([
    ['an initial copy', 'initial', 'initial', false],
    ['a copy of the other mode', 'initial', 'incremental', false],
    ['one that has lost its progress', 'incremental', 'incremental', true],
  ] as const)('counts anew for %s', (_, first, second, done) => {
    record.begin(first, tables(2_000, 4_000), []);
    copy('public.t1', 2);
    if (done) record.tableDone('public.t1');
    record.interrupted();
    vi.advanceTimersByTime(1_000);
    record.begin(second, tables(2_000, 4_000), []);
    expect(record.status).toMatchObject({
      tablesDone: 0,
      rows: 0,
      startedAt: '2026-01-02T03:04:08.000Z',
    });
  });

  it('counts anew for tables that are copied later', () => {
    record.begin('incremental', tables(1_000), []);
    copy('public.t1', 1);
    record.tableDone('public.t1');
    record.complete();
    record.begin('incremental', tables(1_000, 500), ['public.t1']);
    expect(record.status).toMatchObject({
      state: 'copying',
      tablesDone: 1,
      rows: 0,
      estimatedRows: 500,
    });
  });

  it('counts anew for a table that is copied again', () => {
    record.begin('incremental', tables(5_000), []);
    copy('public.t1', 3);
    record.tableAgain('public.t1');
    copy('public.t1', 1);
    expect(record.status).toMatchObject({ rows: 1_000, estimatedRows: 5_000 });
    record.tableDone('public.t1');
    expect(events.slice(1)).toEqual([
      ['snapshotTableAgain', { table: 'public.t1' }],
      ['snapshotTable', { table: 'public.t1', rows: 1_000 }],
    ]);
  });

  it('keeps what it was when it is complete', () => {
    record.begin('initial', tables(4_000), []);
    copy('public.t1', 4);
    record.tableDone('public.t1');
    record.complete();
    vi.advanceTimersByTime(3_600_000);
    // The connection is lost later.
    record.interrupted();
    record.complete();
    expect(record.status).toMatchObject({
      state: 'complete',
      tablesDone: 1,
      rows: 4_000,
      estimatedRows: 4_000,
      rowsPerSecond: 1_000,
      secondsRemaining: 0,
    });
  });

  it('tells each step', () => {
    record.begin('incremental', tables(1_000, 1_000), ['public.t2']);
    copy('public.t1', 2);
    record.tableDone('public.t1');
    record.complete();
    expect(events).toEqual([
      [
        'snapshotStarted',
        { mode: 'incremental', tables: 2, done: 1, resumed: false },
      ],
      ['snapshotTable', { table: 'public.t1', rows: 2_000 }],
      [
        'snapshotCompleted',
        {
          mode: 'incremental',
          tables: 2,
          rows: 2_000,
          durationMilliseconds: 2_000,
        },
      ],
    ]);
  });

  it('is done at once where there is nothing to copy', () => {
    record.begin('initial', [], []);
    record.complete();
    expect(record.status).toMatchObject({
      state: 'complete',
      tablesTotal: 0,
      rows: 0,
      estimatedRows: 0,
      secondsRemaining: 0,
    });
  });
});
