import type { PublishedTable } from '../../server/published-table.js';

/**
 * The order in which tables are copied side by side: what takes longest begins first. Nothing is known of a table without statistics, and it may be
 * large.
 */
export function largestFirst(
  tables: readonly PublishedTable[],
): PublishedTable[] {
  return tables.toSorted((a, b) => {
    const [bytesA, bytesB] = [estimatedBytes(a), estimatedBytes(b)];
    return bytesA === bytesB ? 0 : bytesB - bytesA;
  });
}

function estimatedBytes({
  estimatedRows,
  estimatedRowBytes,
}: PublishedTable): number {
  return estimatedRows === null || estimatedRowBytes === null
    ? estimatedRows === 0
      ? 0
      : Infinity
    : estimatedRows * estimatedRowBytes;
}
