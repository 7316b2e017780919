import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { judgeLiveness, type Pulse } from './liveness.js';

const healthy: Pulse = {
  silence: 0,
  sinceProbe: null,
  walSenderTimeoutMs: 5_000,
  paused: false,
};

describe('judgeLiveness', () => {
  it('waits for twice the timeout of the server', () => {
    expect(judgeLiveness(healthy)).toEqual({ kind: 'wait', ms: 10_000 });
    expect(judgeLiveness({ ...healthy, silence: 9_999 })).toEqual({
      kind: 'wait',
      ms: 1,
    });
  });

  it('then asks for an answer (C05)', () => {
    expect(judgeLiveness({ ...healthy, silence: 10_000 })).toEqual({
      kind: 'probe',
      ms: 2_500,
    });
  });

  it('waits for the answer, and drops the connection when none comes (C05)', () => {
    const asked = { ...healthy, silence: 11_000 };
    expect(judgeLiveness({ ...asked, sinceProbe: 1_000 })).toEqual({
      kind: 'wait',
      ms: 1_500,
    });
    expect(judgeLiveness({ ...asked, sinceProbe: 2_500 })).toEqual({
      kind: 'drop',
    });
  });

  it('gives an answer at least one second and at most ten', () => {
    const silent = { ...healthy, silence: 1e9 };
    expect(judgeLiveness({ ...silent, walSenderTimeoutMs: 100 })).toEqual({
      kind: 'probe',
      ms: 1_000,
    });
    expect(judgeLiveness({ ...silent, walSenderTimeoutMs: 600_000 })).toEqual({
      kind: 'probe',
      ms: 10_000,
    });
  });

  it('takes two minutes where the timeout is off (C07)', () => {
    const off = { ...healthy, walSenderTimeoutMs: 0 };
    expect(judgeLiveness({ ...off, silence: 119_000 })).toEqual({
      kind: 'wait',
      ms: 1_000,
    });
    expect(judgeLiveness({ ...off, silence: 120_000 }).kind).toBe('probe');
  });

  it('concludes nothing from silence while reading is paused', () => {
    const paused = { ...healthy, silence: 1e9, sinceProbe: 1e9, paused: true };
    expect(judgeLiveness(paused)).toEqual({ kind: 'wait', ms: 10_000 });
  });

  it('never asks to look again without a pause, and never drops unasked', () => {
    const pulses = fc.record({
      silence: fc.double({ min: 0, max: 1e9, noNaN: true }),
      sinceProbe: fc.option(fc.double({ min: 0, max: 1e9, noNaN: true })),
      walSenderTimeoutMs: fc.integer({ min: 0, max: 2_147_483_647 }),
      paused: fc.boolean(),
    });
    fc.assert(
      fc.property(pulses, (pulse) => {
        const action = judgeLiveness(pulse);
        if (action.kind === 'drop') expect(pulse.sinceProbe).not.toBeNull();
        else expect(action.ms).toBeGreaterThan(0);
      }),
    );
  });
});
