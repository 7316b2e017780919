import type { HaltCode } from '../engine/model/halts.js';
import type { ResolvedHealthOptions } from '../engine/options/health-options.js';
import type { PipelineStatus } from '../engine/telemetry/pipeline-status.js';
import type { Exceeded } from './thresholds.js';

/** The question a probe asks: has it started, would a restart help, is it at work? */
export type Probe = 'startup' | 'liveness' | 'readiness';

export type Health = 'up' | 'degraded' | 'down';

/**
 * What can be the matter with a pipeline, and what each makes of each probe. Several may hold at once: the worst counts.
 *
 * Liveness is down only when a restart would help: a halted pipeline would be handed the same transaction again, and an outage of
 * the database would become one of every process.
 */
export const CONDITIONS = {
  off: { startup: 'up', liveness: 'up', readiness: 'up' },
  idle: { startup: 'down', liveness: 'up', readiness: 'down' },
  connecting: { startup: 'down', liveness: 'up', readiness: 'down' },
  snapshotting: { startup: 'up', liveness: 'up', readiness: 'degraded' },
  streaming: { startup: 'up', liveness: 'up', readiness: 'up' },
  standby: { startup: 'up', liveness: 'up', readiness: 'up' },
  reconnecting: { startup: 'up', liveness: 'up', readiness: 'degraded' },
  outage: { startup: 'up', liveness: 'up', readiness: 'down' },
  draining: { startup: 'up', liveness: 'up', readiness: 'down' },
  stopped: { startup: 'up', liveness: 'up', readiness: 'down' },
  halted: { startup: 'up', liveness: 'up', readiness: 'down' },
  slot_lost: { startup: 'up', liveness: 'up', readiness: 'down' },
  slot_lost_at_start: { startup: 'down', liveness: 'up', readiness: 'down' },
  copying: { startup: 'up', liveness: 'up', readiness: 'degraded' },
  not_copied: { startup: 'up', liveness: 'up', readiness: 'degraded' },
  stalled: { startup: 'up', liveness: 'down', readiness: 'down' },
  wal_unreserved: { startup: 'up', liveness: 'up', readiness: 'degraded' },
  wal_budget_low: { startup: 'up', liveness: 'up', readiness: 'degraded' },
  wal_budget_critical: { startup: 'up', liveness: 'up', readiness: 'degraded' },
  wal_retained: { startup: 'up', liveness: 'up', readiness: 'degraded' },
  lag: { startup: 'up', liveness: 'up', readiness: 'degraded' },
  waits_for_standby: { startup: 'up', liveness: 'up', readiness: 'degraded' },
} as const satisfies Record<string, Record<Probe, Health>>;

/** Names what is the matter with a pipeline. */
export type Condition = keyof typeof CONDITIONS;

/** Nothing but a person ends these, and requests that the process serves beside need not suffer for it. */
const NEEDS_SOMEBODY: ReadonlySet<Condition> = new Set([
  'halted',
  'slot_lost',
  'slot_lost_at_start',
]);

/** What a probe looks at. */
export interface ProbedPipeline {
  readonly status: Pick<
    PipelineStatus,
    | 'state'
    | 'startedAt'
    | 'halt'
    | 'handler'
    | 'slot'
    | 'snapshot'
    | 'neverCopied'
  >;
  /** Whether the application starts it; otherwise standing still is no fault. */
  readonly autoStart: boolean;
  /** Milliseconds since this state was entered. */
  readonly age: number;
  readonly exceeded: Exceeded;
  readonly options: Pick<
    ResolvedHealthOptions,
    'readiness' | 'livenessOnHalt' | 'reconnectGrace' | 'stalledAfter'
  >;
}

/** Everything that is the case, that of the state first. */
export function conditionsOf(pipeline: ProbedPipeline): readonly Condition[] {
  const { state } = pipeline.status;
  const own = conditionOfState(pipeline);
  if (
    state === 'connecting' ||
    state === 'snapshotting' ||
    state === 'streaming' ||
    state === 'reconnecting' ||
    state === 'halted'
  )
    return [own, ...furtherConditions(pipeline)];
  return [own];
}

/** The answer to a probe: that of the worst condition. */
export function probe(
  question: Probe,
  conditions: readonly Condition[],
  options: Pick<ResolvedHealthOptions, 'readiness' | 'livenessOnHalt'>,
): Health {
  return worst(
    conditions.map((condition) => {
      if (question === 'liveness' && condition === 'halted')
        return options.livenessOnHalt;
      if (
        question === 'readiness' &&
        options.readiness === 'lenient' &&
        NEEDS_SOMEBODY.has(condition)
      )
        return 'degraded';
      return CONDITIONS[condition][question];
    }),
  );
}

/** The health of the whole: that of its worst part, and up when there is none. */
export function worst(parts: readonly Health[]): Health {
  if (parts.includes('down')) return 'down';
  return parts.includes('degraded') ? 'degraded' : 'up';
}

function conditionOfState({
  status: { state },
  autoStart,
  age,
  options,
}: ProbedPipeline): Condition {
  switch (state) {
    case 'idle':
    case 'stopped':
      return autoStart ? state : 'off';
    case 'reconnecting':
      return age <= options.reconnectGrace ? 'reconnecting' : 'outage';
    default:
      return state;
  }
}

function furtherConditions(pipeline: ProbedPipeline): Condition[] {
  const { status, exceeded } = pipeline;
  const further: Condition[] = [];
  if (slotIsLost(status))
    further.push(
      status.startedAt === null ? 'slot_lost_at_start' : 'slot_lost',
    );
  if (isStalled(pipeline)) further.push('stalled');
  if (isCopying(status)) further.push('copying');
  if ((status.neverCopied?.count ?? 0) > 0) further.push('not_copied');
  if (status.slot?.walStatus === 'unreserved') further.push('wal_unreserved');
  if (exceeded.safeWalCritical) further.push('wal_budget_critical');
  else if (exceeded.safeWal) further.push('wal_budget_low');
  if (exceeded.retainedWal) further.push('wal_retained');
  if (exceeded.lag) further.push('lag');
  if (status.slot?.waitsForStandby === true) further.push('waits_for_standby');
  return further;
}

/** A slot that is missing is lost only where there was one: the first connection creates it. */
function slotIsLost({ startedAt, halt, slot }: ProbedPipeline['status']) {
  if (halt !== null && saysSlotIsLost(halt.code)) return true;
  if (slot === null) return false;
  return slot.state === 'missing'
    ? startedAt !== null
    : slot.walStatus === 'lost' || slot.invalidationReason !== null;
}

/** Beside the stream; what is copied before it is a state of its own. */
function isCopying({ state, snapshot }: ProbedPipeline['status']): boolean {
  return (
    state === 'streaming' && snapshot !== null && snapshot.state !== 'complete'
  );
}

function saysSlotIsLost(code: HaltCode): boolean {
  return (
    code === 'data_gap/slot_missing_with_checkpoint' ||
    code.startsWith('slot_invalidated/')
  );
}

/** Only a handler that hangs within this process is mended by a restart; one of a halted pipeline holds nothing up. */
function isStalled({
  status: { state, handler },
  options: { stalledAfter },
}: ProbedPipeline): boolean {
  if (state === 'halted' || handler === null || stalledAfter === null)
    return false;
  return handler.idleMilliseconds >= stalledAfter;
}
