import { describe, expect, it } from 'vitest';
import { ReadGate } from '../source/read-gate.js';
import { Backpressure } from './backpressure.js';

const LIMIT = 1000;
const ARRIVING = 1024 * 1024;

/** A connection with what is held of its transactions. */
class Stage {
  readonly delivery = {
    bytes: 0,
    arrivingBytes: 0,
    held: () => this.told.push('held'),
  };
  readonly intake = { openBytes: 0 };
  readonly told: string[] = [];
  readonly gate = new ReadGate({
    pause: () => this.told.push('pause'),
    resume: () => this.told.push('resume'),
  });
  readonly subject = new Backpressure(
    this.gate,
    this.delivery,
    this.intake,
    LIMIT,
  );

  /** Waits for room like who runs a transaction through; tells what came of it. */
  wait(): { over: boolean } {
    const waited = { over: false };
    void this.subject.room()?.then(() => {
      waited.over = true;
    });
    return waited;
  }
}

describe('room for more', () => {
  it('is there as long as less is held than may be', () => {
    const stage = new Stage();
    stage.delivery.bytes = LIMIT - 10;
    stage.intake.openBytes = 9;
    expect(stage.subject.room()).toBeNull();
    expect(stage.told).toEqual([]);
  });

  it('is waited for until half of it is free, by all who wait, and reading waits as long', async () => {
    const stage = new Stage();
    stage.delivery.bytes = LIMIT - 10;
    stage.intake.openBytes = 10;
    const waiting = [stage.wait(), stage.wait()];
    expect(stage.told).toEqual(['pause', 'held', 'held']);
    stage.delivery.bytes = LIMIT / 2 - 10;
    stage.subject.releaseWhenDrained();
    await Promise.resolve();
    expect(waiting).toEqual([{ over: false }, { over: false }]);
    stage.delivery.bytes -= 1;
    stage.subject.releaseWhenDrained();
    await Promise.resolve();
    expect(waiting).toEqual([{ over: true }, { over: true }]);
    expect(stage.told.slice(3)).toEqual(['resume']);
    expect(stage.subject.room()).toBeNull();
  });

  it('is waited for once more when it is taken again', async () => {
    const stage = new Stage();
    stage.delivery.bytes = LIMIT;
    const first = stage.wait();
    stage.delivery.bytes = 0;
    stage.subject.releaseWhenDrained();
    stage.delivery.bytes = LIMIT;
    const second = stage.wait();
    await Promise.resolve();
    expect([first, second]).toEqual([{ over: true }, { over: false }]);
  });

  it('is there for a transaction that fills it alone: nobody else would make any', () => {
    const stage = new Stage();
    stage.intake.openBytes = 2 * LIMIT;
    expect(stage.subject.room()).toBeNull();
    stage.delivery.bytes = 1;
    const waiting = stage.subject.room();
    expect(waiting).not.toBeNull();
    stage.delivery.bytes = 0;
    stage.subject.releaseWhenDrained();
    expect(stage.subject.room()).toBeNull();
  });

  it('is less for a transaction that is read while it arrives', () => {
    const stage = new Stage();
    stage.delivery.bytes = 1;
    stage.delivery.arrivingBytes = ARRIVING - 1;
    expect(stage.subject.room()).toBeNull();
    stage.delivery.arrivingBytes = ARRIVING;
    expect(stage.subject.room()).not.toBeNull();
    stage.delivery.arrivingBytes = ARRIVING / 2;
    stage.subject.releaseWhenDrained();
    expect(stage.subject.room()).not.toBeNull();
    stage.delivery.arrivingBytes -= 1;
    stage.subject.releaseWhenDrained();
    expect(stage.subject.room()).toBeNull();
  });
});
