import { describe, expect, it } from 'vitest';
import type { ErrorClass } from './error-classes.js';
import {
  decide,
  type Fault,
  NO_FAULTS,
  remember,
  type RetryDecision,
  type RetryLimits,
} from './retry-policy.js';

const LIMITS: RetryLimits = { maxCommandRetries: 2, leaderElection: false };

/** What differs from a fault of the chain before any frame, a second after the last one. */
type Given = Partial<Fault> & { readonly class: ErrorClass };

/** What is decided after each of these faults in turn, with the longest delay. */
function decisions(
  faults: readonly Given[],
  limits: Partial<RetryLimits> = {},
): RetryDecision[] {
  let history = NO_FAULTS;
  return faults.map((given, index) => {
    const fault: Fault = {
      reason: 'server error 53400',
      phase: 'connecting',
      framesFlowed: false,
      deliveredThrough: 0n,
      at: index * 1_000,
      ...given,
    };
    history = remember(history, fault);
    return decide(history, fault, { ...LIMITS, ...limits }, 1);
  });
}

/** Each decision in a word: a delay, `standby`, or the code of a halt. */
function outline(
  faults: readonly Given[],
  limits?: Partial<RetryLimits>,
): (number | string)[] {
  return decisions(faults, limits).map((decision) => {
    if (decision.kind === 'halt') return decision.code;
    return decision.kind === 'retry' ? decision.delayMs : decision.kind;
  });
}

function times(count: number, given: Given): Given[] {
  return Array.from({ length: count }, () => given);
}

const EXHAUSTED = 'command_error/exhausted';
const bounded: Given = { class: 'bounded' };
const transient: Given = { class: 'transient', phase: 'login' };
const refused: Given = { class: 'authentication', phase: 'login' };
const held: Given = { class: 'slot_active', walSenderTimeoutMs: 2_000 };
const stuck: Given = {
  class: 'undecodable',
  phase: 'streaming',
  framesFlowed: true,
};

describe('a server that is away', () => {
  it('is tried for ever, with growing delays', () => {
    const outlined = outline(times(200, transient), { maxCommandRetries: 0 });
    expect(outlined.slice(0, 7)).toEqual([
      500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000,
    ]);
    expect(outlined.at(-1)).toBe(30_000);
  });

  it('is tried at the pace that the fault asks for', () => {
    const paced: Given = { class: 'transient', retryAfterMs: 70 };
    expect(outline([transient, paced, paced])).toEqual([500, 70, 70]);
    expect(outline([{ ...paced, retryAfterMs: null }])).toEqual([500]);
  });

  it('is tried anew after frames have flowed', () => {
    const lost: Given = {
      class: 'transient',
      phase: 'streaming',
      framesFlowed: true,
    };
    expect(outline([...times(5, transient), lost, transient]).slice(5)).toEqual(
      [500, 1_000],
    );
  });
});

describe('faults before the stream', () => {
  it.each([0, 2, 5])('halt after %d retries (13.4 no. 24)', (budget) => {
    const found = outline(times(budget + 1, bounded), {
      maxCommandRetries: budget,
    });
    expect(found.slice(0, -1)).toEqual(
      [500, 1_000, 2_000, 4_000, 8_000].slice(0, budget),
    );
    expect(found.at(-1)).toBe(EXHAUSTED);
  });

  it('say the last reason and the number of attempts', () => {
    const [first] = decisions([bounded], { maxCommandRetries: 0 });
    expect(first).toMatchObject({
      detail: 'server error 53400 while connecting, at 1 attempt',
    });
    expect(decisions(times(3, bounded)).at(-1)).toMatchObject({
      detail: 'server error 53400 while connecting, at 3 attempts',
    });
  });

  it('are counted across a server that is away, which is not counted', () => {
    expect(
      outline([bounded, ...times(20, transient), bounded, transient, bounded]),
    ).toEqual([500, ...outline(times(20, transient)), 1_000, 500, EXHAUSTED]);
  });

  it('are forgotten when frames flow', () => {
    const lost: Given = {
      class: 'transient',
      phase: 'streaming',
      framesFlowed: true,
    };
    expect(outline([...times(2, bounded), lost, ...times(3, bounded)])).toEqual(
      [500, 1_000, 500, 500, 1_000, EXHAUSTED],
    );
  });
});

describe('findings of the chain that are out of date', () => {
  const stale: Given = { class: 'stale' };

  it('make it run again at once, even without retries', () => {
    expect(outline([stale], { maxCommandRetries: 0 })).toEqual([0]);
  });

  it('are faults when that does not help', () => {
    expect(outline(times(4, stale))).toEqual([0, 500, 1_000, EXHAUSTED]);
  });
});

describe('a refused login', () => {
  it('is tried soon twice and then at most once a minute, for ever (G08)', () => {
    expect(outline(times(4, refused), { maxCommandRetries: 0 })).toEqual([
      500, 1_000, 75_000, 75_000,
    ]);
  });

  it('is counted by itself: faults of other kinds before it do not slow it down', () => {
    expect(
      outline([...times(5, transient), refused, refused]).slice(5),
    ).toEqual([500, 1_000]);
  });

  it('stays in the row when the network fails in between (U07)', () => {
    expect(
      outline([refused, transient, refused, transient, refused]).at(-1),
    ).toBe(75_000);
  });

  it('begins a new row after one that was accepted', () => {
    expect(outline([refused, refused, bounded, refused]).at(-1)).toBe(500);
  });
});

describe('a slot that another session holds', () => {
  it('is waited for twice the time-out of the server, and as many polls as retries (G05)', () => {
    // Seen at 0, 1, 2, 3 and 4 s.
    expect(outline(times(5, held))).toEqual([
      1_600,
      1_600,
      1_600,
      1_600,
      EXHAUSTED,
    ]);
    expect(
      outline(times(8, held), { maxCommandRetries: 6 }).indexOf(EXHAUSTED),
    ).toBe(6);
  });

  it.each([null, 0, undefined])(
    'is waited for two minutes when the time-out is %s',
    (walSenderTimeoutMs) => {
      const found = outline(
        times(122, { ...held, walSenderTimeoutMs: walSenderTimeoutMs ?? null }),
      );
      expect(found.indexOf(EXHAUSTED)).toBe(120);
    },
  );

  it('halts at once without retries, and says who holds it', () => {
    const [decision] = decisions([{ ...held, reason: 'held by 7' }], {
      maxCommandRetries: 0,
    });
    expect(decision).toEqual({
      kind: 'halt',
      code: EXHAUSTED,
      detail: 'held by 7, at 1 attempt within 0 s',
    });
  });

  it('makes a standby of a candidate, for ever', () => {
    const found = outline(times(500, held), {
      leaderElection: true,
      maxCommandRetries: 0,
    });
    expect(new Set(found)).toEqual(new Set(['standby']));
  });

  it('is waited for anew when it was free in between', () => {
    expect(
      outline([...times(4, held), bounded, ...times(4, held)]),
    ).not.toContain(EXHAUSTED);
    expect(outline([...times(4, held), transient, held]).at(-1)).toBe(
      EXHAUSTED,
    );
  });

  it('shows each time that the server does its work, so that faults of weeks do not add up', () => {
    const weeks = times(6, bounded).flatMap((fault) => [held, fault]);
    expect(outline(weeks, { leaderElection: true })).not.toContain(EXHAUSTED);
  });

  it('does not slow down who waits for it', () => {
    expect(
      outline([...times(50, held), transient], { leaderElection: true }).at(-1),
    ).toBe(500);
  });
});

describe('WAL that the server cannot decode', () => {
  it('is tried again as often as other faults, although frames flow', () => {
    expect(outline(times(3, stuck))).toEqual([500, 1_000, EXHAUSTED]);
    expect(outline([stuck], { maxCommandRetries: 0 })).toEqual([EXHAUSTED]);
  });

  it('is told apart by progress: a transaction behind the last place', () => {
    const at = (deliveredThrough: bigint): Given => ({
      ...stuck,
      deliveredThrough,
    });
    expect(outline([at(5n), at(5n), at(6n), at(6n), at(6n)])).toEqual([
      500,
      1_000,
      500,
      1_000,
      EXHAUSTED,
    ]);
  });

  it('is not forgotten for a lost connection', () => {
    const lost: Given = { ...stuck, class: 'transient' };
    expect(outline([stuck, lost, stuck, lost, stuck])).toEqual([
      500,
      500,
      1_000,
      500,
      EXHAUSTED,
    ]);
  });
});

describe('what only a person mends', () => {
  it('halts at once', () => {
    expect(
      decisions([{ class: 'permanent', reason: 'server error 3D000' }]),
    ).toEqual([
      {
        kind: 'halt',
        code: 'command_error/permanent',
        detail: 'server error 3D000 while connecting',
      },
    ]);
    expect(
      decisions([
        { class: 'publication_missing', phase: 'streaming', reason: 'gone' },
      ]),
    ).toEqual([{ kind: 'halt', code: 'publication/missing', detail: 'gone' }]);
  });
});
