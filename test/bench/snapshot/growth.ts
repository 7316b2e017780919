import type { Figures, Results } from '../report.js';
import type { SnapshotLoad } from './snapshot-loads.js';

/** Loads of the same rows, the smaller first. */
const SMALL = 'rows200k';
const LARGE = 'rows2M';

/**
 * Adds `growth` to what was measured: by how much more the time of `rows2M` is above that of `rows200k` than its rows are. At 1 time is
 * proportional to rows; below it a start counts that both have in common. `null` for other loads, or when one of the two did not run.
 */
export function withGrowth(
  results: Results,
  loads: readonly Pick<SnapshotLoad, 'name' | 'rows'>[],
): Results {
  const rowsOf = (name: string): number | null =>
    loads.find((load) => load.name === name)?.rows ?? null;
  const times = quotient(rowsOf(LARGE), rowsOf(SMALL));
  const growthOf = (load: string, reader: string): number | null =>
    load === LARGE
      ? quotient(
          quotient(
            results.get(LARGE)?.get(reader)?.['wallSeconds'],
            results.get(SMALL)?.get(reader)?.['wallSeconds'],
          ),
          times,
        )
      : null;
  return new Map(
    [...results].map(([load, readers]) => [
      load,
      new Map(
        [...readers].map(([reader, figures]): [string, Figures] => [
          reader,
          { ...figures, growth: growthOf(load, reader) },
        ]),
      ),
    ]),
  );
}

function quotient(
  above: number | null | undefined,
  below: number | null | undefined,
): number | null {
  if (typeof above !== 'number' || typeof below !== 'number') return null;
  return Math.round((above / below) * 1000) / 1000;
}
