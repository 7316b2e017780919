import { describe, expect, it } from 'vitest';
import type { PipelineState } from '../engine/telemetry/pipeline-state.js';
import {
  probe,
  RECONNECT_GRACE_MS,
  worst,
  type Health,
  type Probe,
} from './probe.js';

const QUESTIONS: readonly Probe[] = ['startup', 'liveness', 'readiness'];

function answers(
  state: PipelineState,
  age = 0,
  autoStart = true,
): readonly Health[] {
  return QUESTIONS.map((question) =>
    probe(question, { state, autoStart, age }),
  );
}

describe('probe', () => {
  it.each<[PipelineState, Health, Health, Health]>([
    ['idle', 'down', 'up', 'down'],
    ['connecting', 'down', 'up', 'down'],
    ['streaming', 'up', 'up', 'up'],
    ['reconnecting', 'up', 'up', 'degraded'],
    ['draining', 'up', 'up', 'down'],
    ['stopped', 'up', 'up', 'down'],
    ['halted', 'up', 'up', 'down'],
  ])('%s: startup %s, liveness %s, readiness %s', (state, ...expected) => {
    expect(answers(state)).toEqual(expected);
  });

  it('takes a lost connection for an outage after the grace period', () => {
    expect(answers('reconnecting', RECONNECT_GRACE_MS)).toEqual([
      'up',
      'up',
      'degraded',
    ]);
    expect(answers('reconnecting', RECONNECT_GRACE_MS + 1)).toEqual([
      'up',
      'up',
      'down',
    ]);
  });

  it('finds no fault in a pipeline that the application does not start and that stands still', () => {
    expect(answers('idle', 0, false)).toEqual(['up', 'up', 'up']);
    expect(answers('stopped', 0, false)).toEqual(['up', 'up', 'up']);
    expect(answers('halted', 0, false)).toEqual(['up', 'up', 'down']);
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
