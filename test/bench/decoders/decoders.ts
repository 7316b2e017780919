import { replicateAllTables } from '../../support/captured.js';
import { choose } from '../bench-options.js';
import type { BenchOutcome, BenchRun } from '../bench-run.js';
import { planLoads } from '../loads.js';
import { readLoads } from '../read-loads.js';
import { presentReaders } from '../readers/present-readers.js';
import { missedTargets } from '../targets.js';
import { decoderReaders } from './decoder-readers.js';
import { DECODER_LOADS, DECODER_TARGETS } from './targets.js';
import { withCpuOfPgoutput } from './yardstick.js';

/** The decoders of this package read the same WAL, each from its own output plugin. */
export async function decoders(run: BenchRun): Promise<BenchOutcome> {
  const { options, congestionControl } = run;
  const loads = choose(
    planLoads(options.scale, congestionControl.choices.slice(0, 1)).filter(
      ({ name }) => DECODER_LOADS.includes(name),
    ),
    options.only,
  );
  const readers = await presentReaders(decoderReaders(), options.readers);
  const outcome = await readLoads(run, loads, readers, replicateAllTables);
  const results = withCpuOfPgoutput(outcome.results);
  const missed =
    options.scale === 1 ? missedTargets(results, DECODER_TARGETS) : [];
  return { results, failures: [...outcome.failures, ...missed] };
}
