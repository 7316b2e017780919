import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it } from 'vitest';
import { ReadGate } from './read-gate.js';

function gate(): { gate: ReadGate; log: string[] } {
  const log: string[] = [];
  const socket = {
    pause: () => log.push('pause'),
    resume: () => log.push('resume'),
  };
  return { gate: new ReadGate(socket), log };
}

describe('ReadGate', () => {
  it('pauses with the first hold and resumes with the last release', () => {
    const { gate: subject, log } = gate();
    subject.hold('asking');
    subject.hold('backpressure');
    subject.release('asking');
    expect(subject.paused).toBe(true);
    expect(log).toEqual(['pause']);
    subject.release('backpressure');
    expect(subject.paused).toBe(false);
    expect(log).toEqual(['pause', 'resume']);
  });

  it('resumes in the context in which it was made, whoever releases it', () => {
    const context = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    const subject = new ReadGate({
      pause: () => {},
      resume: () => seen.push(context.getStore()),
    });
    context.run('a handler', () => {
      subject.hold('backpressure');
      subject.release('backpressure');
    });
    expect(seen).toEqual([undefined]);
  });

  it('counts a reason once, however often it holds', () => {
    const { gate: subject, log } = gate();
    subject.hold('backpressure');
    subject.hold('backpressure');
    subject.release('backpressure');
    expect(subject.paused).toBe(false);
    expect(log).toEqual(['pause', 'resume']);
  });

  it('does nothing when a reason is released that does not hold', () => {
    const { gate: subject, log } = gate();
    subject.release('asking');
    subject.hold('starting');
    subject.release('asking');
    expect(subject.paused).toBe(true);
    expect(log).toEqual(['pause']);
  });

  it('pauses the socket for a pace, and does not call that paused', () => {
    const { gate: subject, log } = gate();
    subject.hold('pacing');
    expect(subject.paused).toBe(false);
    subject.hold('backpressure');
    expect(subject.paused).toBe(true);
    subject.release('pacing');
    expect(subject.paused).toBe(true);
    expect(log).toEqual(['pause']);
    subject.release('backpressure');
    expect(log).toEqual(['pause', 'resume']);
  });
});
