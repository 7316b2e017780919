import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Feedback } from './feedback.js';
import { Positions } from './positions.js';

/** What a status update says, and when it went out. */
interface Sent {
  readonly at: number;
  readonly write: bigint;
  readonly flush: bigint;
  readonly asks: boolean;
}

/** A feedback over a timeout of 4 s (interval 1 s, silence 8 s, grace 2 s) with all that it did. */
class Stage {
  readonly positions: Positions;
  readonly sent: Sent[] = [];
  readonly stores: number[] = [];
  readonly deaths: number[] = [];
  paused = false;
  readonly feedback: Feedback;
  readonly #began = performance.now();

  constructor(
    keepsPositions = false,
    walSenderTimeoutMs = 4_000,
    recordsOnly = false,
  ) {
    this.positions = new Positions(100n, keepsPositions, recordsOnly);
    this.feedback = new Feedback({
      positions: this.positions,
      walSenderTimeoutMs,
      paused: () => this.paused,
      send: (frame) =>
        this.sent.push({
          at: this.#now(),
          write: frame.readBigUInt64BE(1),
          flush: frame.readBigUInt64BE(9),
          asks: frame[33] === 1,
        }),
      requestStore: () => this.stores.push(this.#now()),
      dead: () => this.deaths.push(this.#now()),
    });
    this.feedback.start();
  }

  get times(): number[] {
    return this.sent.map(({ at }) => at);
  }

  /** A healthy server speaks now and then. */
  async hearFor(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 500) {
      this.feedback.heard();
      await vi.advanceTimersByTimeAsync(Math.min(500, ms - passed));
    }
  }

  #now(): number {
    return Math.round(performance.now() - this.#began);
  }
}

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

describe('Feedback', () => {
  it('tells the position of the slot every quarter of the timeout until something is durable (C09)', async () => {
    const stage = new Stage();
    stage.positions.receive(500n);
    await stage.hearFor(3_000);
    expect(stage.times).toEqual([1_000, 2_000, 3_000]);
    expect(stage.sent.every(({ flush }) => flush === 100n)).toBe(true);
    expect(stage.sent.every(({ write }) => write === 500n)).toBe(true);
  });

  it('says nothing of the flushed position of a log again while the rest concerns nobody, so that a shutdown does not wait for it', async () => {
    const stage = new Stage(false, 4_000, true);
    stage.positions.keepalive(500n);
    await stage.hearFor(2_000);
    expect(stage.sent.map(({ flush }) => flush)).toEqual([0n, 0n]);
    stage.positions.begin();
    await stage.hearFor(1_000);
    expect(stage.sent.at(-1)).toMatchObject({ write: 500n, flush: 100n });
    stage.positions.complete(600n);
    stage.positions.settle(600n);
    stage.positions.keepalive(700n);
    stage.feedback.moved();
    await stage.hearFor(500);
    expect(stage.sent.at(-1)).toMatchObject({ write: 700n, flush: 600n });
    await stage.hearFor(1_500);
    expect(stage.sent.at(-1)).toMatchObject({ write: 700n, flush: 0n });
  });

  it('goes on while reading is paused (C02)', async () => {
    const stage = new Stage();
    stage.paused = true;
    await vi.advanceTimersByTimeAsync(20_000);
    expect(stage.sent).toHaveLength(20);
    expect(stage.sent.some(({ asks }) => asks)).toBe(false);
    expect(stage.deaths).toEqual([]);
  });

  it('tells moves at most every 100 ms, and the last one too', async () => {
    const stage = new Stage();
    await vi.advanceTimersByTimeAsync(200);
    for (let move = 1n; move <= 25n; move += 1n) {
      stage.positions.keepalive(100n + move);
      stage.feedback.moved();
      await vi.advanceTimersByTimeAsync(10);
    }
    await vi.advanceTimersByTimeAsync(100);
    expect(stage.times).toEqual([200, 300, 400, 500]);
    expect(stage.sent.at(-1)?.flush).toBe(125n);
  });

  it('says nothing more when nothing moves', async () => {
    const stage = new Stage();
    stage.feedback.moved();
    await vi.advanceTimersByTimeAsync(900);
    expect(stage.sent).toEqual([]);
  });

  it('answers a server that asks at once, and no oftener than every 50 ms', async () => {
    const stage = new Stage();
    await vi.advanceTimersByTimeAsync(500);
    for (let question = 0; question < 20; question += 1) {
      stage.feedback.heard();
      stage.feedback.replyAsked();
      await vi.advanceTimersByTimeAsync(10);
    }
    expect(stage.times).toEqual([500, 550, 600, 650, 700]);
  });

  it('asks for a store once an interval while there is something to store', async () => {
    const stage = new Stage(true);
    stage.positions.keepalive(200n);
    stage.feedback.moved();
    await stage.hearFor(1_500);
    stage.positions.store(200n);
    await stage.hearFor(3_000);
    stage.positions.keepalive(300n);
    stage.feedback.replyAsked();
    await stage.hearFor(100);
    expect(stage.stores).toHaveLength(2);
    expect(stage.stores[0]).toBe(1_000);
    expect(stage.stores[1]).toBe(4_500);
  });

  it('confirms nothing before it is stored', async () => {
    const stage = new Stage(true);
    stage.positions.keepalive(200n);
    await stage.hearFor(1_100);
    expect(stage.sent.at(-1)).toMatchObject({ write: 200n, flush: 100n });
    stage.positions.store(200n);
    stage.feedback.moved();
    await stage.hearFor(100);
    expect(stage.sent.at(-1)).toMatchObject({ write: 200n, flush: 200n });
  });

  it('asks a server that is silent for twice its timeout, and drops it when no answer comes (C05)', async () => {
    const stage = new Stage();
    await vi.advanceTimersByTimeAsync(30_000);
    expect(stage.sent.filter(({ asks }) => asks)).toMatchObject([
      { at: 8_000 },
    ]);
    expect(stage.deaths).toEqual([10_000]);
  });

  it('keeps a server that answers', async () => {
    const stage = new Stage();
    for (let round = 0; round < 5; round += 1) {
      await vi.advanceTimersByTimeAsync(9_000);
      stage.feedback.heard();
    }
    expect(stage.sent.filter(({ asks }) => asks).length).toBeGreaterThan(3);
    expect(stage.deaths).toEqual([]);
  });

  it('counts silence from the end of a pause', async () => {
    const stage = new Stage();
    stage.paused = true;
    await vi.advanceTimersByTimeAsync(60_000);
    stage.paused = false;
    await vi.advanceTimersByTimeAsync(6_900);
    expect(stage.sent.some(({ asks }) => asks)).toBe(false);
    await vi.advanceTimersByTimeAsync(1_200);
    expect(stage.sent.some(({ asks }) => asks)).toBe(true);
  });

  it('does not spin and does not give up where the timeout is off (C07)', async () => {
    const stage = new Stage(false, 0);
    await vi.advanceTimersByTimeAsync(119_000);
    expect(stage.sent).toHaveLength(11);
    expect(stage.deaths).toEqual([]);
  });

  it('sends a last update when it finishes, and nothing after', async () => {
    const stage = new Stage();
    stage.positions.keepalive(200n);
    stage.feedback.finish();
    stage.feedback.replyAsked();
    stage.feedback.moved();
    stage.feedback.finish();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(stage.sent).toEqual([
      { at: 0, write: 200n, flush: 200n, asks: false },
    ]);
    expect(vi.getTimerCount()).toBe(0);
  });
});
