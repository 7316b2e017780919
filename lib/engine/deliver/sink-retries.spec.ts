import { describe, expect, it } from 'vitest';
import { SinkRetries } from './sink-retries.js';

describe('SinkRetries', () => {
  it('allows as many as it was told, with a delay that doubles up to 30 seconds', () => {
    const retries = new SinkRetries({ maxRetries: 7, backoffMs: 1_000 });
    const delays = Array.from({ length: 7 }, () => retries.failed(5n)?.delayMs);
    expect(delays).toEqual([
      1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000,
    ]);
    expect(retries.failed(5n)).toBeNull();
  });

  it('never waits less than the first delay', () => {
    const retries = new SinkRetries({ maxRetries: 2, backoffMs: 60_000 });
    expect(retries.failed(5n)?.delayMs).toBe(60_000);
    expect(retries.failed(5n)?.delayMs).toBe(60_000);
  });

  it('counts anew for other work, after success, and after it gave up', () => {
    const retries = new SinkRetries({ maxRetries: 2, backoffMs: 1 });
    retries.failed(5n);
    expect(retries.failed(5n)?.attempt).toBe(2);
    expect(retries.failed(6n)?.attempt).toBe(1);
    retries.succeeded(6n);
    expect(retries.failed(6n)?.attempt).toBe(1);
    expect(retries.failed(6n)?.attempt).toBe(2);
    expect(retries.failed(6n)).toBeNull();
    expect(retries.failed(6n)?.attempt).toBe(1);
  });

  it('goes on counting when other work succeeds meanwhile', () => {
    const retries = new SinkRetries({ maxRetries: 2, backoffMs: 1 });
    retries.failed(5n);
    retries.succeeded(4n);
    expect(retries.failed(5n)?.attempt).toBe(2);
  });

  it('covers what may fail by chance, and nothing when it is switched off', () => {
    const retries = new SinkRetries({ maxRetries: 1, backoffMs: 1 });
    expect(retries.covers('sink_failed')).toBe(true);
    expect(retries.covers('sink_failed/around_skipped')).toBe(true);
    expect(retries.covers('snapshot_failed')).toBe(true);
    expect(retries.covers('sink_failed/no_promise')).toBe(false);
    expect(retries.covers('sink_failed/partial_transaction')).toBe(false);
    expect(retries.covers('publication/missing')).toBe(false);
    const off = new SinkRetries({ maxRetries: 0, backoffMs: 1 });
    expect(off.covers('sink_failed')).toBe(false);
    expect(off.covers('snapshot_failed')).toBe(false);
  });
});
