import { describe, expect, it } from 'vitest';
import { PAGE_BYTES } from '../raw-row.js';
import { ChunkLimit } from './chunk-limit.js';

describe('the number of rows of a chunk', () => {
  it('is what was asked for while nothing is known of the rows', () => {
    expect(new ChunkLimit(1_000, null).rows).toBe(1_000);
  });

  it('is what was asked for when so many rows are well below the bytes of a chunk', () => {
    expect(new ChunkLimit(1_000, 3_000).rows).toBe(1_000);
  });

  it('is less for wide rows by the statistics, and never none', () => {
    const limit = new ChunkLimit(1_000, 1024 * 1024);
    expect(limit.rows).toBe(3);
    expect(new ChunkLimit(1_000, 100 * PAGE_BYTES).rows).toBe(1);
  });

  it('follows the rows that were seen, down and up', () => {
    const limit = new ChunkLimit(1_000, 100);
    limit.saw(10, PAGE_BYTES);
    expect(limit.rows).toBe(7);
    limit.saw(7, 700);
    expect(limit.rows).toBe(1_000);
    limit.saw(0, 0);
    expect(limit.rows).toBe(1_000);
  });

  it('is halved when chunks were too large, but not to nothing', () => {
    const limit = new ChunkLimit(700, null);
    const seen = [1, 2, 3, 4, 5].map(() => {
      limit.shrink();
      return limit.rows;
    });
    expect(seen).toEqual([350, 175, 100, 100, 100]);
    const small = new ChunkLimit(5, null);
    small.shrink();
    expect(small.rows).toBe(5);
  });
});
