import { describe, expect, it } from 'vitest';
import { PageQueue, type PageLimits } from './page-queue.js';
import type { Page } from './raw-row.js';

/** A queue, and what it has asked of the flow of rows. */
function made(limits: Partial<PageLimits> = {}): {
  readonly queue: PageQueue;
  readonly flow: string[];
} {
  const flow: string[] = [];
  const queue = new PageQueue(
    { rows: 3, bytes: 100, ...limits },
    { pause: () => flow.push('pause'), resume: () => flow.push('resume') },
  );
  return { queue, flow };
}

function add(queue: PageQueue, count: number, bytes = 1): void {
  for (let index = 0; index < count; index++) queue.add(String(index), bytes);
}

function sizeOf(page: Page | null): number | null {
  return page === null ? null : page.rows.length;
}

function contentOf(page: Page | null): unknown {
  return page === null ? null : [[...page.rows], page.bytes];
}

describe('PageQueue', () => {
  it('ends a page with the row by which it has enough rows', async () => {
    const { queue } = made();
    add(queue, 7);
    queue.end();
    expect(contentOf(await queue.next())).toEqual([[['0'], ['1'], ['2']], 3]);
    expect(sizeOf(await queue.next())).toBe(3);
    expect(sizeOf(await queue.next())).toBe(1);
    expect(await queue.next()).toBeNull();
    expect(await queue.next()).toBeNull();
  });

  it('ends a page with the row by which it has enough bytes', async () => {
    const { queue } = made();
    queue.add('a', 99);
    queue.add('b', 1);
    queue.add('large', 1_000_000);
    queue.add('c', 1);
    queue.end();
    expect(contentOf(await queue.next())).toEqual([[['a'], ['b']], 100]);
    expect(contentOf(await queue.next())).toEqual([[['large']], 1_000_000]);
    expect(contentOf(await queue.next())).toEqual([[['c']], 1]);
  });

  it('gives no page without rows', async () => {
    const { queue } = made();
    add(queue, 3);
    queue.end();
    expect(sizeOf(await queue.next())).toBe(3);
    expect(await queue.next()).toBeNull();
  });

  it('holds rows back with every page, and lets them come when the next one is asked for and none is there', async () => {
    const { queue, flow } = made();
    const first = queue.next();
    expect(flow).toEqual(['resume']);
    add(queue, 7);
    expect(flow).toEqual(['resume', 'pause', 'pause']);
    expect(sizeOf(await first)).toBe(3);
    expect(sizeOf(await queue.next())).toBe(3);
    expect(flow).toHaveLength(3);
    const third = queue.next();
    expect(flow.at(-1)).toBe('resume');
    queue.end();
    expect(sizeOf(await third)).toBe(1);
  });

  it('tells a consumer that waits, and one that asks later, why no more rows come', async () => {
    const { queue } = made();
    const waiting = queue.next();
    const reason = new Error('lost');
    queue.fail(reason);
    await expect(waiting).rejects.toBe(reason);
    await expect(queue.next()).rejects.toBe(reason);
    expect(queue.settled).toBe(true);
  });

  it('does not hand over what was left when no more rows come', async () => {
    const { queue } = made();
    add(queue, 4);
    queue.fail(new Error('lost'));
    await expect(queue.next()).rejects.toThrow('lost');
  });
});
