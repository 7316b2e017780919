import { rm } from 'node:fs/promises';
import path from 'node:path';
import { present } from '../../support/present.js';
import { choose } from '../bench-options.js';
import type { BenchOutcome, BenchRun } from '../bench-run.js';
import { projectFolder } from '../project-folder.js';
import { type Figures, medians, type Results } from '../report.js';
import { type LargeLoad, largeLoads } from './large-loads.js';
import { fits, LARGE_READERS, type LargeReader } from './large-readers.js';
import { LargeSource } from './large-source.js';
import { brokenPromises } from './promises.js';
import { type Expected, readOnce } from './read-once.js';

/** On the disk that the project is on: where temporary files are may be memory. */
const SPILL_FOLDER = path.join(projectFolder(), '.build', 'bench-spill');

/** A transaction is written while a reader is connected: each reader has one of its own, of the same rows. */
export async function large(run: BenchRun): Promise<BenchOutcome> {
  const { options, server } = run;
  const loads = choose(largeLoads(options.scale), options.only);
  const readers = choose(LARGE_READERS, options.readers);
  for (const { name, options: how } of readers)
    console.log(`reader ${name}: ${how}`);
  const results: Results = new Map();
  const failures: string[] = [];
  for (const load of loads) {
    console.log(
      `\nload ${load.name}: ${load.rows} rows in one transaction, logical_decoding_work_mem ${load.workMemKb} kB`,
    );
    const source = await LargeSource.create(server, load);
    try {
      const turns = new Turns(run, load, source);
      results.set(load.name, await turns.take(readers));
      failures.push(...turns.failures);
    } finally {
      await source.close();
    }
  }
  if (options.scale === 1) failures.push(...brokenPromises(results));
  else console.log('\nnot of full size: nothing is promised of it');
  return { results, failures };
}

/** The runs of one load. */
class Turns {
  readonly failures: string[] = [];
  readonly #runs = new Map<string, Figures[]>();
  /** The same of every turn. */
  #expected: Expected | null = null;

  constructor(
    private readonly run: BenchRun,
    private readonly load: LargeLoad,
    private readonly source: LargeSource,
  ) {}

  /** In every round each reader has one turn, and a round begins one reader further than the one before. */
  async take(all: readonly LargeReader[]): Promise<Map<string, Figures>> {
    const readers = all.filter((reader) => {
      const found = fits(reader, this.load);
      if (!found)
        console.log(`  ${reader.name}: left out, does not fit into memory`);
      return found;
    });
    for (let round = 0; round < this.run.options.rounds; round++) {
      for (const [index] of readers.entries())
        await this.#turn(
          present(readers[(index + round) % readers.length]),
          round,
        );
    }
    return new Map(
      readers.flatMap(({ name }) => {
        const runs = this.#runs.get(name);
        return runs === undefined ? [] : [[name, medians(runs)]];
      }),
    );
  }

  async #turn(reader: LargeReader, round: number): Promise<void> {
    const { load, source, run } = this;
    const label = `  round ${round + 1}  ${reader.name.padEnd(9)}`;
    try {
      const figures = await readOnce(
        { load, source, cores: run.cores, spillFolder: SPILL_FOLDER },
        reader,
        async () => (this.#expected ??= await source.expected()),
      );
      this.#runs.set(reader.name, [
        ...(this.#runs.get(reader.name) ?? []),
        figures,
      ]);
      console.log(
        `${label} written in ${figures['writeSeconds']?.toFixed(1)} s, last change ${figures['lastChangeMs']?.toFixed(0)} ms after the commit`,
      );
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.failures.push(`${load.name}, ${reader.name}: ${reason}`);
      console.log(`${label} FAILED`);
    } finally {
      await rm(SPILL_FOLDER, { recursive: true, force: true });
    }
  }
}
