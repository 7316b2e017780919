/** How far the copy of one table is. */
export interface TableProgress {
  readonly name: string;
  /** Rows by the statistics of the source; `null` when there are none. */
  readonly estimated: number | null;
  /** Rows that the sink has taken. */
  rows: number;
  done: boolean;
}

/**
 * Rows that will have been copied in the end: statistics may be old, so what was copied corrects them.
 *
 * @returns `null` while a table that is not done has no statistics
 */
export function estimateRows(tables: readonly TableProgress[]): number | null {
  let sum = 0;
  for (const { done, estimated, rows } of tables) {
    if (done) sum += rows;
    else if (estimated === null) return null;
    else sum += Math.max(estimated, rows);
  }
  return sum;
}

/**
 * How long the rest takes.
 *
 * @returns `null` when that is not known: without statistics or progress, or when there is more than they said
 */
export function estimateSeconds(
  tables: readonly TableProgress[],
  rowsPerSecond: number,
): number | null {
  if (tables.every(({ done }) => done)) return 0;
  const estimated = estimateRows(tables);
  if (estimated === null) return null;
  const left = estimated - countRows(tables);
  return left === 0 || rowsPerSecond === 0
    ? null
    : Math.ceil(left / rowsPerSecond);
}

export function countRows(tables: readonly TableProgress[]): number {
  return tables.reduce((sum, { rows }) => sum + rows, 0);
}
