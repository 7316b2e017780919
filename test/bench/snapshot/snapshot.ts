import { present } from '../../support/present.js';
import { choose } from '../bench-options.js';
import type { BenchOutcome, BenchRun } from '../bench-run.js';
import { type Figures, medians, type Results } from '../report.js';
import { withGrowth } from './growth.js';
import { PopulatedSource } from './populated-source.js';
import { type SnapshotLoad, snapshotLoads } from './snapshot-loads.js';
import type { SnapshotReader, SnapshotResult } from './snapshot-reader.js';
import { allSnapshotReaders } from './snapshot-readers.js';
import { missedTargets } from './targets.js';

/** Readers that others are compared with, the best first. */
const YARDSTICKS = ['copy', 'raw'];

/** Every reader reads the same rows, in turns. */
export async function snapshot(run: BenchRun): Promise<BenchOutcome> {
  const { options, server } = run;
  const loads = choose(snapshotLoads(options.scale), options.only);
  const readers = presentReaders(options.readers);
  const results: Results = new Map();
  const failures: string[] = [];
  for (const load of loads) {
    console.log(`\nload ${load.name}: ${load.rows} rows`);
    const source = await PopulatedSource.create(server, load);
    try {
      const rounds = new Rounds(run, load, source);
      results.set(
        load.name,
        await rounds.take(
          readers.filter(({ bounded }) => bounded || !load.boundedReadersOnly),
        ),
      );
      failures.push(...rounds.failures);
    } finally {
      await source.close();
    }
  }
  const grown = withGrowth(results, loads);
  if (options.scale === 1) failures.push(...missedTargets(grown));
  return { results: grown, failures };
}

function presentReaders(wanted: readonly string[] | null): SnapshotReader[] {
  return choose(allSnapshotReaders(), wanted).filter((reader) => {
    const absence = reader.absence();
    console.log(
      absence === null
        ? `reader ${reader.name}: ${reader.options}`
        : `reader ${reader.name}: ABSENT, ${absence}`,
    );
    return absence === null;
  });
}

/** The runs of one load. */
class Rounds {
  readonly failures: string[] = [];
  readonly #runs = new Map<string, Figures[]>();

  constructor(
    private readonly run: BenchRun,
    private readonly load: SnapshotLoad,
    private readonly source: PopulatedSource,
  ) {}

  /** In every round each reader has one turn, and a round begins one reader further than the one before. */
  async take(
    readers: readonly SnapshotReader[],
  ): Promise<Map<string, Figures>> {
    for (let round = 0; round < this.run.options.rounds; round++) {
      const results = new Map<string, SnapshotResult>();
      for (const [index] of readers.entries()) {
        const reader = present(readers[(index + round) % readers.length]);
        const result = await this.#turn(reader, round);
        if (result !== null) results.set(reader.name, result);
      }
      this.#add(results);
    }
    return new Map(
      readers.flatMap(({ name }) => {
        const runs = this.#runs.get(name);
        return runs === undefined ? [] : [[name, medians(runs)]];
      }),
    );
  }

  async #turn(
    reader: SnapshotReader,
    round: number,
  ): Promise<SnapshotResult | null> {
    const { load, source, run } = this;
    const label = `  round ${round + 1}  ${reader.name.padEnd(16)}`;
    try {
      const result = await reader.read({ load, source, cores: run.cores });
      await source.tidy();
      if (result.rows !== null && result.rows !== load.rows)
        throw new Error(`${result.rows} rows instead of ${load.rows}`);
      console.log(`${label} ${result.wallSeconds.toFixed(3)} s`);
      return result;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.failures.push(`${load.name}, ${reader.name}: ${reason}`);
      console.log(`${label} FAILED`);
      return null;
    }
  }

  /** Compares the readers of a round with each other: the machine may be another one in the next. */
  #add(results: ReadonlyMap<string, SnapshotResult>): void {
    const yardstick = YARDSTICKS.map((name) => results.get(name)).find(
      (result) => result !== undefined,
    );
    for (const [name, result] of results) {
      const { wallSeconds, clientCpuSeconds, peakRssMb, idleRssMb } = result;
      const figures = {
        wallSeconds,
        rowsPerSecond: this.load.rows / wallSeconds,
        ofCopy:
          yardstick === undefined ? null : yardstick.wallSeconds / wallSeconds,
        clientCpuSeconds,
        peakRssMb,
        aboveIdleMb:
          peakRssMb === null || idleRssMb === null
            ? null
            : peakRssMb - idleRssMb,
      };
      this.#runs.set(name, [...(this.#runs.get(name) ?? []), figures]);
    }
  }
}
