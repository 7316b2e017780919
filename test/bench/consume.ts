import { choose } from './bench-options.js';
import type { BenchOutcome, BenchRun } from './bench-run.js';
import { planLoads } from './loads.js';
import { readLoads } from './read-loads.js';
import { allReaders } from './readers/index.js';
import { presentReaders } from './readers/present-readers.js';

/** This package, others, and what is possible at all. */
export async function consume(run: BenchRun): Promise<BenchOutcome> {
  const { options, congestionControl } = run;
  const loads = choose(
    planLoads(options.scale, congestionControl.choices),
    options.only,
  );
  const readers = await presentReaders(allReaders(), options.readers);
  return readLoads(run, loads, readers);
}
