import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { HaltCode } from '../engine/model/halts.js';
import { resolveHealth } from '../engine/options/health-options.js';
import type { PipelineState } from '../engine/telemetry/pipeline-state.js';
import type { PipelineStatus } from '../engine/telemetry/pipeline-status.js';
import type { SlotStatus } from '../engine/telemetry/slot-status.js';
import type { SnapshotStatus } from '../engine/telemetry/snapshot-status.js';
import {
  type Condition,
  CONDITIONS,
  conditionsOf,
  type Health,
  probe,
  type Probe,
  type ProbedPipeline,
  worst,
} from './probe.js';

const QUESTIONS: readonly Probe[] = ['startup', 'liveness', 'readiness'];
const STARTED = '2026-01-02T03:04:05.000Z';
const GRACE_MS = 60_000;
const STALLED_MS = 600_000;

const SLOT: SlotStatus = {
  state: 'present',
  checkedAt: STARTED,
  reason: null,
  active: true,
  activePid: 1,
  waitsForStandby: false,
  walStatus: 'reserved',
  invalidationReason: null,
  walEndLsn: '0/1',
  retainedWalBytes: 0,
  lagBytes: 0,
  safeWalBytes: null,
  safeWalFraction: null,
  secondsToLoss: null,
  heldBy: null,
};

const SNAPSHOT: SnapshotStatus = {
  mode: 'incremental',
  state: 'copying',
  tablesDone: 0,
  tablesTotal: 1,
  tables: ['public.t'],
  rows: 10,
  estimatedRows: 100,
  rowsPerSecond: 1,
  secondsRemaining: 90,
  startedAt: STARTED,
};

interface Case {
  readonly state?: PipelineState;
  readonly startedAt?: string | null;
  readonly halt?: HaltCode;
  readonly idle?: number;
  readonly slot?: Partial<SlotStatus>;
  readonly snapshot?: SnapshotStatus['state'];
  /** How many tables. */
  readonly neverCopied?: number;
  readonly autoStart?: boolean;
  readonly age?: number;
  readonly exceeded?: Partial<ProbedPipeline['exceeded']>;
  readonly options?: Parameters<typeof resolveHealth>[0];
}

function pipelineOf(one: Case): ProbedPipeline {
  const { state = 'streaming', startedAt = STARTED } = one;
  return {
    status: {
      state,
      startedAt,
      halt: haltOf(one.halt),
      handler:
        one.idle === undefined
          ? null
          : { runningMilliseconds: one.idle, idleMilliseconds: one.idle },
      slot: one.slot === undefined ? null : { ...SLOT, ...one.slot },
      snapshot:
        one.snapshot === undefined
          ? null
          : { ...SNAPSHOT, state: one.snapshot },
      neverCopied:
        one.neverCopied === undefined
          ? null
          : { count: one.neverCopied, tables: ['public.late'] },
    },
    autoStart: one.autoStart ?? true,
    age: one.age ?? 0,
    exceeded: {
      lag: false,
      retainedWal: false,
      safeWal: false,
      safeWalCritical: false,
      ...one.exceeded,
    },
    options: resolveHealth(one.options),
  };
}

function haltOf(code: HaltCode | undefined): PipelineStatus['halt'] {
  if (code === undefined) return null;
  return {
    code,
    remedy: '',
    detail: '',
    lsn: null,
    delivery: null,
    at: STARTED,
  };
}

function conditions(one: Case): readonly Condition[] {
  return conditionsOf(pipelineOf(one));
}

/** Answers to startup, liveness and readiness. */
function answers(one: Case): Health[] {
  const { options } = pipelineOf(one);
  return QUESTIONS.map((question) => probe(question, conditions(one), options));
}

describe('probe', () => {
  it.each<[PipelineState, Health, Health, Health]>([
    ['idle', 'down', 'up', 'down'],
    ['connecting', 'down', 'up', 'down'],
    ['snapshotting', 'up', 'up', 'degraded'],
    ['streaming', 'up', 'up', 'up'],
    ['reconnecting', 'up', 'up', 'degraded'],
    ['standby', 'up', 'up', 'up'],
    ['draining', 'up', 'up', 'down'],
    ['stopped', 'up', 'up', 'down'],
    ['halted', 'up', 'up', 'down'],
  ])('%s: startup %s, liveness %s, readiness %s', (state, ...expected) => {
    expect(answers({ state })).toEqual(expected);
    expect(conditions({ state })).toEqual([state]);
  });

  it('takes a lost connection for an outage after the grace period', () => {
    const state = 'reconnecting';
    expect(answers({ state, age: GRACE_MS })).toEqual(['up', 'up', 'degraded']);
    expect(answers({ state, age: GRACE_MS + 1 })).toEqual(['up', 'up', 'down']);
    expect(conditions({ state, age: GRACE_MS + 1 })).toEqual(['outage']);
    const options = { reconnectGrace: 5 };
    expect(conditions({ state, age: 6, options })).toEqual(['outage']);
  });

  it('finds no fault in a pipeline that the application does not start and that stands still', () => {
    const autoStart = false;
    expect(answers({ state: 'idle', autoStart })).toEqual(['up', 'up', 'up']);
    expect(answers({ state: 'stopped', autoStart })).toEqual([
      'up',
      'up',
      'up',
    ]);
    expect(answers({ state: 'halted', autoStart })).toEqual([
      'up',
      'up',
      'down',
    ]);
  });

  it('follows the options for a halt', () => {
    const state = 'halted';
    expect(answers({ state, options: { readiness: 'lenient' } })).toEqual([
      'up',
      'up',
      'degraded',
    ]);
    expect(answers({ state, options: { livenessOnHalt: 'down' } })).toEqual([
      'up',
      'down',
      'down',
    ]);
    // An outage is not for a person to end, so lenient does not touch it.
    expect(
      answers({
        state: 'reconnecting',
        age: GRACE_MS + 1,
        options: { readiness: 'lenient' },
      }),
    ).toEqual(['up', 'up', 'down']);
  });

  it.each<[string, Case]>([
    ['the server says so', { slot: { walStatus: 'lost' } }],
    ['it was invalidated', { slot: { invalidationReason: 'rows_removed' } }],
    [
      'it is gone',
      { state: 'reconnecting', slot: { ...SLOT, state: 'missing' } },
    ],
    [
      'the halt says so',
      { state: 'halted', halt: 'slot_invalidated/wal_lost' },
    ],
    [
      'it was gone at a reconnect',
      { state: 'halted', halt: 'data_gap/slot_missing_with_checkpoint' },
    ],
  ])('knows that the slot is lost when %s', (_, one) => {
    expect(conditions(one)).toContain('slot_lost');
    expect(answers(one)).toEqual(['up', 'up', 'down']);
    expect(answers({ ...one, options: { readiness: 'lenient' } })[2]).toBe(
      'degraded',
    );
  });

  it('has not started when the slot was lost before', () => {
    const one: Case = {
      state: 'halted',
      startedAt: null,
      halt: 'slot_invalidated/wal_lost',
    };
    expect(answers(one)).toEqual(['down', 'up', 'down']);
    expect(answers({ ...one, halt: 'sink_failed' })).toEqual([
      'up',
      'up',
      'down',
    ]);
  });

  it('misses no slot that the first connection has yet to create', () => {
    expect(
      conditions({
        state: 'connecting',
        startedAt: null,
        slot: { state: 'missing' },
      }),
    ).toEqual(['connecting']);
  });

  it('is down by nothing that is unknown', () => {
    const slot: Partial<SlotStatus> = {
      state: 'unknown',
      walStatus: null,
      reason: 'no answer in time',
    };
    expect(answers({ slot })).toEqual(['up', 'up', 'up']);
  });

  it('would have a handler that hangs restarted, and no slow one', () => {
    expect(answers({ idle: STALLED_MS - 1 })).toEqual(['up', 'up', 'up']);
    expect(answers({ idle: STALLED_MS })).toEqual(['up', 'down', 'down']);
    // It outlived its connection, and no other one begins before it has settled.
    expect(answers({ state: 'reconnecting', idle: STALLED_MS })).toEqual([
      'up',
      'down',
      'down',
    ]);
    expect(
      answers({ idle: STALLED_MS, options: { stalledAfter: false } }),
    ).toEqual(['up', 'up', 'up']);
    expect(answers({ state: 'halted', idle: STALLED_MS })[1]).toBe('up');
    // Also one that takes rows of a snapshot.
    expect(answers({ state: 'snapshotting', idle: STALLED_MS })).toEqual([
      'up',
      'down',
      'down',
    ]);
  });

  it.each<[Condition, Case]>([
    ['lag', { exceeded: { lag: true } }],
    ['wal_retained', { exceeded: { retainedWal: true } }],
    ['wal_budget_low', { exceeded: { safeWal: true } }],
    [
      'wal_budget_critical',
      { exceeded: { safeWal: true, safeWalCritical: true } },
    ],
    ['wal_unreserved', { slot: { walStatus: 'unreserved' } }],
    ['waits_for_standby', { slot: { waitsForStandby: true } }],
    ['copying', { snapshot: 'copying' }],
    ['copying', { snapshot: 'interrupted' }],
    ['not_copied', { neverCopied: 1 }],
  ])('is degraded and no worse by %s', (condition, one) => {
    expect(conditions(one)).toEqual(['streaming', condition]);
    expect(answers(one)).toEqual(['up', 'up', 'degraded']);
  });

  it('is up when everything is copied', () => {
    const one: Case = { snapshot: 'complete', neverCopied: 0 };
    expect(conditions(one)).toEqual(['streaming']);
  });

  it('tells a copy before the stream, or one that waits for the connection, by the state alone', () => {
    expect(conditions({ state: 'snapshotting', snapshot: 'copying' })).toEqual([
      'snapshotting',
    ]);
    expect(
      conditions({ state: 'reconnecting', snapshot: 'interrupted' }),
    ).toEqual(['reconnecting']);
  });

  it('watches the slot and the WAL during a copy too', () => {
    const one: Case = {
      state: 'snapshotting',
      startedAt: null,
      exceeded: { retainedWal: true },
    };
    expect(conditions(one)).toEqual(['snapshotting', 'wal_retained']);
    expect(conditions({ ...one, slot: { walStatus: 'lost' } })).toContain(
      'slot_lost_at_start',
    );
  });

  it('finds a standby up, whatever the limits say', () => {
    const one: Case = {
      state: 'standby',
      exceeded: { lag: true },
      slot: { walStatus: 'unreserved' },
    };
    expect(answers(one)).toEqual(['up', 'up', 'up']);
  });
});

describe('worst', () => {
  it('is the health of the worst part', () => {
    expect(worst(['up', 'down', 'degraded'])).toBe('down');
    expect(worst(['up', 'degraded', 'up'])).toBe('degraded');
    expect(worst(['up'])).toBe('up');
    expect(worst([])).toBe('up');
  });
});

describe('docs/health.md', () => {
  it('has the table of conditions as it is here', () => {
    const rows = [
      ...readFileSync('docs/health.md', 'utf8').matchAll(
        /^\| `(\w+)` +\| (\w+) +\| (\w+) +\| (\w+) +\|/gm,
      ),
    ].map(([, name, startup, liveness, readiness]) => [
      name,
      { startup, liveness, readiness },
    ]);
    expect(rows).toEqual(Object.entries(CONDITIONS));
  });
});
