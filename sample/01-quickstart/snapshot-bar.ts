import type { SnapshotStatus } from 'nestjs-replicant';

const WIDTH = 24;

/** A progress bar for a person. */
export function describeSnapshot(snapshot: SnapshotStatus): string {
  const { rows, estimatedRows, rowsPerSecond, secondsRemaining } = snapshot;
  const left =
    secondsRemaining === null ? '' : `   ${format(secondsRemaining)} s left`;
  return [
    bar(snapshot),
    `${snapshot.tablesDone} of ${snapshot.tablesTotal} tables`,
    `${format(rows)} of ${estimatedRows === null ? '?' : format(estimatedRows)} rows (${format(rowsPerSecond)}/s)${left}`,
  ].join('   ');
}

function bar({ state, rows, estimatedRows }: SnapshotStatus): string {
  if (estimatedRows === null) return `[${' '.repeat(WIDTH)}]   ? %`;
  // Estimates may be off: it is full when all is copied, and not before.
  const part =
    state === 'complete'
      ? 1
      : Math.min(0.99, estimatedRows === 0 ? 0 : rows / estimatedRows);
  const full = Math.floor(part * WIDTH);
  const percent = String(Math.floor(part * 100)).padStart(3);
  return `[${'#'.repeat(full)}${' '.repeat(WIDTH - full)}] ${percent} %`;
}

function format(number: number): string {
  return number.toLocaleString('en-US');
}
