import type { PipelineState } from '../engine/telemetry/pipeline-state.js';

/** The question a probe asks: has it started, would a restart help, is it at work? */
export type Probe = 'startup' | 'liveness' | 'readiness';

export type Health = 'up' | 'degraded' | 'down';

/** Milliseconds for which a lost connection is taken for a fail-over and not for an outage. */
export const RECONNECT_GRACE_MS = 60_000;

/** What a probe looks at. */
export interface ProbedPipeline {
  readonly state: PipelineState;
  /** Whether the application starts it; otherwise standing still is no fault. */
  readonly autoStart: boolean;
  /** Milliseconds since this state was entered. */
  readonly age: number;
}

/**
 * The answer to a probe.
 *
 * Liveness is down only when a restart would help, and it helps in none of these states: a halted pipeline would be
 * handed the same transaction again, and an outage of the database would become one of every process.
 */
export function probe(
  question: Probe,
  { state, autoStart, age }: ProbedPipeline,
): Health {
  if (question === 'liveness') return 'up';
  switch (state) {
    case 'streaming':
    case 'standby':
      return 'up';
    case 'idle':
      return autoStart ? 'down' : 'up';
    case 'connecting':
      return 'down';
    case 'reconnecting':
      if (question === 'startup') return 'up';
      return age <= RECONNECT_GRACE_MS ? 'degraded' : 'down';
    case 'stopped':
      return question === 'startup' || !autoStart ? 'up' : 'down';
    case 'draining':
    case 'halted':
      return question === 'startup' ? 'up' : 'down';
  }
}

/** The health of the whole: that of its worst part, and up when there is none. */
export function worst(parts: readonly Health[]): Health {
  if (parts.includes('down')) return 'down';
  return parts.includes('degraded') ? 'degraded' : 'up';
}
