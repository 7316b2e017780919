import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { PacedReading } from './paced-reading.js';
import { ReadGate } from './read-gate.js';

/** A socket whose reads the test makes. */
class Socket extends EventEmitter {
  readableLength = 0;
  readonly log: string[] = [];
  remoteAddress: string | undefined = '127.0.0.1';

  pause(): void {
    this.log.push('pause');
  }

  resume(): void {
    this.log.push('resume');
  }
}

function reader({
  allowed = true,
  tcp = true,
}: { allowed?: boolean; tcp?: boolean } = {}): {
  socket: Socket;
  gate: ReadGate;
  subject: PacedReading;
  turn: (...bytes: number[]) => void;
} {
  const socket = new Socket();
  if (!tcp) socket.remoteAddress = undefined;
  const gate = new ReadGate(socket);
  const subject = new PacedReading(socket, gate, allowed);
  subject.start();
  /** One turn of the event loop that reads so many bytes, 1 ms after the last. */
  const turn = (...bytes: number[]): void => {
    vi.advanceTimersByTime(1);
    for (const size of bytes) socket.emit('data', Buffer.alloc(size));
    vi.advanceTimersByTime(0);
  };
  return { socket, gate, subject, turn };
}

function repeat(times: number, action: () => void): void {
  for (let time = 0; time < times; time++) action();
}

/** What makes a stream dense when it comes every millisecond. */
const SMALL = 5_000;
const RICH = 20_000;
/** How long it rests at such a rate. */
const REST_MS = 16;

beforeEach(() => {
  vi.useFakeTimers({
    toFake: [
      'setTimeout',
      'clearTimeout',
      'setImmediate',
      'clearImmediate',
      'performance',
    ],
  });
});

afterEach(() => {
  vi.useRealTimers();
});

describe('PacedReading', () => {
  it('rests once the stream is dense, and again when it has read what was gathered', () => {
    const { socket, subject, turn } = reader();
    repeat(63, () => turn(SMALL));
    expect(socket.log).toEqual([]);
    turn(SMALL);
    expect(socket.log).toEqual(['pause']);
    expect(subject.reading.pacing).toBe(true);
    vi.advanceTimersByTime(REST_MS - 1);
    expect(socket.log).toEqual(['pause']);
    vi.advanceTimersByTime(1);
    expect(socket.log).toEqual(['pause', 'resume']);
    turn(RICH);
    turn(RICH);
    expect(socket.log).toEqual(['pause', 'resume']);
    expect(subject.reading.pacing).toBe(true);
    turn(SMALL);
    expect(socket.log).toEqual(['pause', 'resume', 'pause']);
  });

  it('decides once per turn, however many reads it made', () => {
    const { socket, turn, subject } = reader();
    repeat(63, () => turn(2_000, 2_000, 2_000));
    expect(socket.log).toEqual([]);
    turn(SMALL);
    vi.advanceTimersByTime(REST_MS);
    turn(6_000, 6_000, 6_000);
    turn(SMALL);
    expect(socket.log).toEqual(['pause', 'resume', 'pause']);
    expect(subject.reading.readsPerSecond).toBe(66);
    expect(subject.reading.bytesPerRead).toBe(
      Math.round((63 * 6_000 + 2 * SMALL + 18_000) / 66),
    );
  });

  it('does not count what Node had buffered at resume as new', () => {
    const { socket, turn, subject } = reader();
    repeat(64, () => turn(SMALL));
    socket.readableLength = 16_000;
    vi.advanceTimersByTime(REST_MS);
    socket.readableLength = 0;
    turn(16_000, 16_382);
    turn(1);
    expect(socket.log).toEqual(['pause', 'resume']);
    expect(subject.reading.pacing).toBe(false);
    repeat(63, () => turn(SMALL));
    expect(socket.log).toHaveLength(2);
    turn(SMALL);
    expect(socket.log).toHaveLength(3);
  });

  it('hands over what comes after a silence without a rest, and counts anew', () => {
    const { socket, turn, subject } = reader();
    repeat(64, () => turn(SMALL));
    vi.advanceTimersByTime(REST_MS);
    expect(subject.reading.pacing).toBe(true);
    vi.advanceTimersByTime(4);
    expect(subject.reading.pacing).toBe(false);
    turn(RICH);
    turn(SMALL);
    expect(socket.log).toEqual(['pause', 'resume']);
  });

  it('does not begin while turns are 10 ms apart', () => {
    const { socket, turn } = reader();
    repeat(500, () => {
      vi.advanceTimersByTime(9);
      turn(RICH);
    });
    expect(socket.log).toEqual([]);
  });

  it.each([
    ['it is switched off', { allowed: false }],
    ['the socket is not TCP', { tcp: false }],
  ])('never rests when %s, and still counts', (_, settings) => {
    const { socket, turn, subject } = reader(settings);
    repeat(500, () => turn(RICH));
    expect(socket.log).toEqual([]);
    expect(subject.reading).toEqual({
      readsPerSecond: 500,
      bytesPerRead: RICH,
      pacing: false,
    });
  });

  it('leaves a gate alone that another holds, and counts anew after it', () => {
    const { socket, turn, gate } = reader();
    repeat(63, () => turn(SMALL));
    gate.hold('backpressure');
    turn(SMALL);
    expect(socket.log).toEqual(['pause']);
    gate.release('backpressure');
    repeat(63, () => turn(RICH));
    expect(socket.log).toEqual(['pause', 'resume']);
    turn(RICH);
    expect(socket.log).toEqual(['pause', 'resume', 'pause']);
  });

  it('does not end a hold that began within a rest', () => {
    const { socket, turn, gate } = reader();
    repeat(64, () => turn(SMALL));
    gate.hold('asking');
    vi.advanceTimersByTime(REST_MS);
    expect(socket.log).toEqual(['pause']);
    gate.release('asking');
    expect(socket.log).toEqual(['pause', 'resume']);
    turn(RICH);
    expect(socket.log).toHaveLength(2);
  });

  it.each([
    ['with pacing', {}],
    ['without', { allowed: false }],
    ['on a Unix socket', { tcp: false }],
  ])('takes in so much in one turn and no more, %s', (_, settings) => {
    const { socket, gate } = reader(settings);
    for (let read = 0; read < 3; read++)
      socket.emit('data', Buffer.alloc(65_536));
    expect(socket.log).toEqual([]);
    socket.emit('data', Buffer.alloc(65_536));
    expect(socket.log).toEqual(['pause']);
    // It is but for a moment, and says nothing about the server.
    expect(gate.paused).toBe(false);
    vi.advanceTimersByTime(0);
    expect(socket.log).toEqual(['pause', 'resume']);
  });

  it('resumes at once when it is stopped within a rest, and keeps no timer', () => {
    const { socket, turn, subject, gate } = reader();
    repeat(64, () => turn(SMALL));
    subject.stop();
    expect(socket.log).toEqual(['pause', 'resume']);
    expect(gate.paused).toBe(false);
    expect(vi.getTimerCount()).toBe(0);
    expect(socket.listenerCount('data')).toBe(0);
    expect(subject.reading.pacing).toBe(false);
  });

  it('keeps no timer when it is stopped within a turn, or twice, or before it starts', () => {
    const { socket, subject } = reader();
    socket.emit('data', Buffer.alloc(5));
    expect(vi.getTimerCount()).toBe(1);
    subject.stop();
    subject.stop();
    expect(vi.getTimerCount()).toBe(0);
    expect(socket.log).toEqual([]);
  });
});
