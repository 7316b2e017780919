import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Positions } from './positions.js';

/** The four facts that must only grow, and the three numbers of a status update. */
function snapshot(positions: Positions): Record<string, bigint> {
  const { received, delivered, durable, flush, status } = positions;
  return {
    received,
    delivered,
    durable,
    flush,
    write: status.write,
    statusFlush: status.flush,
    statusApply: status.apply,
  };
}

describe('Positions', () => {
  it('begin where the slot is', () => {
    const positions = new Positions(100n, true);
    expect(positions.status).toEqual({ write: 100n, flush: 100n, apply: 100n });
    expect(positions.idle).toBe(true);
    expect(positions.storable).toBeNull();
  });

  it('tell received, delivered and durable apart', () => {
    const positions = new Positions(100n, false);
    positions.begin();
    positions.receive(110n);
    positions.complete(120n);
    expect(positions.status).toEqual({ write: 120n, flush: 100n, apply: 100n });
    positions.handOver(120n);
    expect([positions.delivered, positions.durable]).toEqual([120n, 100n]);
    positions.settle(120n);
    expect(positions.status).toEqual({ write: 120n, flush: 120n, apply: 120n });
  });

  it('let nothing be forgotten before it is stored, where the checkpoint stores positions', () => {
    const positions = new Positions(100n, true);
    positions.keepalive(200n);
    expect([positions.durable, positions.flush]).toEqual([200n, 100n]);
    expect(positions.storable).toBe(200n);
    positions.store(150n);
    expect([positions.flush, positions.storable]).toEqual([150n, 200n]);
    positions.store(200n);
    expect([positions.flush, positions.storable]).toEqual([200n, null]);
  });

  it('have nothing to store where the checkpoint stores no positions', () => {
    const positions = new Positions(100n, false);
    positions.keepalive(200n);
    expect([positions.flush, positions.storable]).toEqual([200n, null]);
  });

  it('confirm a keepalive only when nothing received is undelivered', () => {
    const positions = new Positions(100n, false);
    positions.begin();
    positions.keepalive(110n);
    expect(positions.durable).toBe(100n);
    positions.complete(120n);
    positions.begin();
    positions.complete(130n);
    positions.keepalive(140n);
    positions.settle(120n);
    expect(positions.durable).toBe(120n);
  });

  it('catch up with a keepalive that came too early, once everything before it is durable', () => {
    const positions = new Positions(100n, false);
    positions.begin();
    positions.complete(120n);
    positions.keepalive(140n);
    expect([positions.received, positions.durable]).toEqual([140n, 100n]);
    positions.settle(120n);
    expect([positions.delivered, positions.durable]).toEqual([140n, 140n]);
  });

  it('do not catch up while the next transaction arrives', () => {
    const positions = new Positions(100n, false);
    positions.begin();
    positions.complete(120n);
    positions.keepalive(140n);
    positions.begin();
    positions.settle(120n);
    expect(positions.durable).toBe(120n);
  });

  it('hold a message outside transactions as they hold a transaction', () => {
    const positions = new Positions(100n, false);
    positions.receive(110n);
    positions.complete(110n);
    positions.keepalive(140n);
    expect([positions.received, positions.durable]).toEqual([140n, 100n]);
    positions.begin();
    positions.complete(160n);
    positions.settle(110n, true);
    expect(positions.durable).toBe(110n);
    positions.settle(160n);
    expect(positions.durable).toBe(160n);
  });
});

describe('Positions of a log', () => {
  it.each([false, true])(
    'confirm the ends of transactions and nothing that concerns nobody (checkpoint stores positions: %s)',
    (keeps) => {
      const positions = new Positions(100n, keeps, true);
      positions.keepalive(200n);
      expect([positions.received, positions.durable]).toEqual([200n, 200n]);
      expect([positions.flush, positions.storable]).toEqual([100n, null]);
      positions.begin();
      positions.complete(220n);
      positions.settle(220n, true);
      expect([positions.flush, positions.storable]).toEqual([100n, null]);
      positions.begin();
      positions.complete(250n);
      positions.settle(250n);
      positions.keepalive(300n);
      if (keeps) {
        expect([positions.flush, positions.storable]).toEqual([100n, 250n]);
        positions.store(250n);
      }
      expect([positions.flush, positions.storable]).toEqual([250n, null]);
      expect(positions.durable).toBe(300n);
    },
  );

  it('are withheld only while the sink has everything', () => {
    const positions = new Positions(100n, true, true);
    expect(positions.withheld).toBe(false);
    positions.keepalive(200n);
    expect(positions.withheld).toBe(true);
    positions.begin();
    expect(positions.withheld).toBe(false);
    positions.complete(250n);
    expect(positions.withheld).toBe(false);
    positions.settle(250n);
    // Not before its end is stored and confirmed.
    expect(positions.withheld).toBe(false);
    positions.store(250n);
    expect(positions.withheld).toBe(false);
    positions.keepalive(300n);
    expect(positions.withheld).toBe(true);
  });

  it('are never withheld from the server of a mirror', () => {
    const positions = new Positions(100n, true);
    positions.keepalive(200n);
    positions.store(150n);
    expect(positions.withheld).toBe(false);
  });
});

type Step =
  | { readonly kind: 'transaction'; readonly size: number }
  | { readonly kind: 'keepalive'; readonly ahead: number }
  | { readonly kind: 'begin' | 'settle' | 'store' | 'storePart' };

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.record({
      kind: fc.constant('transaction' as const),
      size: fc.integer({ min: 1, max: 50 }),
    }),
    fc.record({
      kind: fc.constant('keepalive' as const),
      // Servers repeat positions, and some step back after a failover: nothing may follow them.
      ahead: fc.integer({ min: -60, max: 60 }),
    }),
    fc.constantFrom(
      { kind: 'begin' as const },
      { kind: 'settle' as const },
      { kind: 'store' as const },
      { kind: 'storePart' as const },
    ),
  ),
  { maxLength: 60 },
);

/** Plays a server that sends in WAL order, and a sink that settles in that order. */
class Play {
  readonly positions: Positions;
  readonly undelivered: bigint[] = [];
  open = false;
  sent = 1000n;
  stored = 1000n;

  constructor(readonly keeps: boolean) {
    this.positions = new Positions(this.sent, keeps);
  }

  take(step: Step): void {
    switch (step.kind) {
      case 'begin':
        return this.begin();
      case 'transaction':
        return this.transaction(BigInt(step.size));
      case 'keepalive':
        return this.keepalive(BigInt(step.ahead));
      case 'settle':
        return this.settle();
      case 'store':
        return this.store(this.positions.storable);
      case 'storePart': {
        const { storable } = this.positions;
        return this.store(storable === null ? null : storable - 1n);
      }
    }
  }

  begin(): void {
    if (this.open) return;
    this.open = true;
    this.positions.receive(this.sent);
    this.positions.begin();
  }

  transaction(size: bigint): void {
    this.begin();
    this.sent += size;
    this.open = false;
    this.undelivered.push(this.sent);
    this.positions.complete(this.sent);
  }

  keepalive(ahead: bigint): void {
    // In the middle of a transaction the server stands before its commit.
    if (ahead > 0n && !this.open) this.sent += ahead;
    this.positions.keepalive(ahead > 0n ? this.sent : this.sent + ahead);
  }

  settle(): void {
    const end = this.undelivered.shift();
    if (end === undefined) return;
    this.positions.handOver(end);
    this.positions.settle(end);
  }

  store(position: bigint | null): void {
    if (position === null) return;
    if (position > this.stored) this.stored = position;
    this.positions.store(position);
  }
}

describe('Positions, whatever happens', () => {
  it('never move backwards', () => {
    fc.assert(
      fc.property(steps, fc.boolean(), (list, keeps) => {
        const play = new Play(keeps);
        let before = snapshot(play.positions);
        for (const step of list) {
          play.take(step);
          const after = snapshot(play.positions);
          for (const [name, value] of Object.entries(before))
            expect(after[name]).toBeGreaterThanOrEqual(value);
          before = after;
        }
      }),
    );
  });

  it('confirm at most what is durable and what is stored, and never what is undelivered', () => {
    fc.assert(
      fc.property(steps, fc.boolean(), (list, keeps) => {
        const play = new Play(keeps);
        for (const step of list) {
          play.take(step);
          const { positions, undelivered } = play;
          expect(positions.flush).toBeLessThanOrEqual(positions.durable);
          if (keeps) expect(positions.flush).toBeLessThanOrEqual(play.stored);
          expect(positions.durable).toBeLessThanOrEqual(positions.received);
          expect(positions.delivered).toBeGreaterThanOrEqual(positions.durable);
          const oldest = undelivered[0];
          if (oldest !== undefined)
            expect(positions.durable).toBeLessThan(oldest);
          expect(positions.status.apply).toBe(positions.flush);
        }
      }),
    );
  });

  it('reach everything that was sent once all is durable', () => {
    fc.assert(
      fc.property(steps, (list) => {
        const play = new Play(false);
        for (const step of list) play.take(step);
        if (play.open) play.transaction(1n);
        while (play.undelivered.length > 0) play.settle();
        expect(play.positions.flush).toBe(play.sent);
        expect(play.positions.idle).toBe(true);
      }),
    );
  });
});
