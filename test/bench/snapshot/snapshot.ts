import { choose } from '../bench-options.js';
import type { BenchOutcome, BenchRun } from '../bench-run.js';
import { presentReaders } from '../readers/present-readers.js';
import type { Figures, Results } from '../report.js';
import { missedTargets } from '../targets.js';
import { takeTurns } from '../turns.js';
import { withGrowth } from './growth.js';
import { PopulatedSource } from './populated-source.js';
import { type SnapshotLoad, snapshotLoads } from './snapshot-loads.js';
import type {
  SnapshotReader,
  SnapshotResult,
  SnapshotTask,
} from './snapshot-reader.js';
import { allSnapshotReaders } from './snapshot-readers.js';
import { SNAPSHOT_TARGETS } from './targets.js';

/** Readers that others are compared with, the best first. */
const YARDSTICKS = ['copy', 'raw'];

/** Every reader reads the same rows, in turns. */
export async function snapshot(run: BenchRun): Promise<BenchOutcome> {
  const { options, server, cores } = run;
  const loads = choose(snapshotLoads(options.scale), options.only);
  const readers = await presentReaders(allSnapshotReaders(), options.readers);
  const results: Results = new Map();
  const failures: string[] = [];
  for (const load of loads) {
    console.log(`\nload ${load.name}: ${load.rows} rows`);
    const source = await PopulatedSource.create(server, load);
    try {
      const outcome = await takeTurns({
        load: load.name,
        readers: readers.filter(
          ({ bounded }) => bounded || !load.boundedReadersOnly,
        ),
        rounds: options.rounds,
        read: (reader) => readWhole({ load, source, cores }, reader),
        describe: ({ wallSeconds }) => `${wallSeconds.toFixed(3)} s`,
        measured: (round) => compared(load, round),
      });
      results.set(load.name, outcome.figures);
      failures.push(...outcome.failures);
    } finally {
      await source.close();
    }
  }
  const grown = withGrowth(results, loads);
  if (options.scale === 1)
    failures.push(...missedTargets(grown, SNAPSHOT_TARGETS));
  return { results: grown, failures };
}

/** A reader that has missed something was not faster. */
async function readWhole(
  task: SnapshotTask,
  reader: SnapshotReader,
): Promise<SnapshotResult> {
  const { load, source } = task;
  const result = await reader.read(task);
  await source.tidy();
  if (result.rows !== null && result.rows !== load.rows)
    throw new Error(`${result.rows} rows instead of ${load.rows}`);
  return result;
}

/** Compares the readers of a round with each other. */
function compared(
  { rows }: SnapshotLoad,
  round: ReadonlyMap<string, SnapshotResult>,
): Map<string, Figures> {
  const yardstick = YARDSTICKS.map((name) => round.get(name)).find(
    (result) => result !== undefined,
  );
  return new Map(
    [...round].map(([name, result]): [string, Figures] => {
      const { wallSeconds, clientCpuSeconds, peakRssMb, idleRssMb } = result;
      return [
        name,
        {
          wallSeconds,
          rowsPerSecond: rows / wallSeconds,
          ofCopy:
            yardstick === undefined
              ? null
              : yardstick.wallSeconds / wallSeconds,
          clientCpuSeconds,
          peakRssMb,
          aboveIdleMb:
            peakRssMb === null || idleRssMb === null
              ? null
              : peakRssMb - idleRssMb,
        },
      ];
    }),
  );
}
