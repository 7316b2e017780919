/** What one run has measured, or the medians of several. `null` is what does not apply or cannot be told. */
export type Figures = Readonly<Record<string, number | null>>;

/** Figures by load and reader. */
export type Results = Map<string, Map<string, Figures>>;

/** The median of every figure. */
export function medians(runs: readonly Figures[]): Figures {
  const names = Object.keys(runs[0] ?? {});
  return Object.fromEntries(
    names.map((name) => [name, median(runs.map((run) => run[name] ?? null))]),
  );
}

function median(values: readonly (number | null)[]): number | null {
  const sorted = values
    .filter((value) => value !== null)
    .toSorted((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)];
  const lower = sorted[Math.floor((sorted.length - 1) / 2)];
  if (upper === undefined || lower === undefined) return null;
  return rounded((upper + lower) / 2);
}

/** Sorted values in, the value that so many percent are not above of. */
export function percentile(sorted: readonly number[], percent: number): number {
  const place = Math.ceil((sorted.length * percent) / 100) - 1;
  return rounded(sorted[Math.max(0, place)] ?? Number.NaN);
}

function rounded(value: number): number {
  return value >= 1000 ? Math.round(value) : Math.round(value * 1000) / 1000;
}

/** One line for each load and reader. */
export function table(results: Results): string {
  const lines: string[][] = [];
  for (const [load, readers] of results) {
    for (const [reader, figures] of readers) {
      if (lines.length === 0)
        lines.push(['load', 'reader', ...Object.keys(figures)]);
      const cells = Object.values(figures).map((value) => value ?? '-');
      lines.push([load, reader, ...cells.map(String)]);
    }
  }
  const widths = (lines[0] ?? []).map((_, column) =>
    Math.max(...lines.map((line) => line[column]?.length ?? 0)),
  );
  return lines
    .map((line) =>
      line
        .map((cell, column) =>
          column < 2
            ? cell.padEnd(widths[column] ?? 0)
            : cell.padStart(widths[column] ?? 0),
        )
        .join('  '),
    )
    .join('\n');
}

/** The last line that a bench prints. */
export function closingLine(bench: string, results: Results): string {
  const loads = Object.fromEntries(
    [...results].map(([load, readers]) => [load, Object.fromEntries(readers)]),
  );
  return JSON.stringify({ bench, loads });
}
