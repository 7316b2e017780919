import { rm } from 'node:fs/promises';
import path from 'node:path';
import { choose } from '../bench-options.js';
import type { BenchOutcome, BenchRun } from '../bench-run.js';
import { projectFolder } from '../project-folder.js';
import { presentReaders } from '../readers/present-readers.js';
import type { Figures, Results } from '../report.js';
import { takeTurns } from '../turns.js';
import { type LargeLoad, largeLoads } from './large-loads.js';
import { fits, LARGE_READERS, type LargeReader } from './large-readers.js';
import { LargeSource } from './large-source.js';
import { brokenPromises } from './promises.js';
import { type Expected, type LargeTask, readOnce } from './read-once.js';

/** On the disk that the project is on: where temporary files are may be memory. */
const SPILL_FOLDER = path.join(projectFolder(), '.build', 'bench-spill');

/** A transaction is written while a reader is connected: each reader has one of its own, of the same rows. */
export async function large(run: BenchRun): Promise<BenchOutcome> {
  const { options, server, cores } = run;
  const loads = choose(largeLoads(options.scale), options.only);
  const readers = await presentReaders(LARGE_READERS, options.readers);
  const results: Results = new Map();
  const failures: string[] = [];
  for (const load of loads) {
    console.log(
      `\nload ${load.name}: ${load.rows} rows in one transaction, logical_decoding_work_mem ${load.workMemKb} kB`,
    );
    const source = await LargeSource.create(server, load);
    try {
      // The same of every turn.
      let seen: Expected | null = null;
      const outcome = await takeTurns({
        load: load.name,
        readers: thatFit(readers, load),
        rounds: options.rounds,
        read: (reader) =>
          turn(
            { load, source, cores, spillFolder: SPILL_FOLDER },
            reader,
            async () => (seen ??= await source.expected()),
          ),
        describe: ({ writeSeconds, lastChangeMs }) =>
          `written in ${writeSeconds?.toFixed(1)} s, last change ${lastChangeMs?.toFixed(0)} ms after the commit`,
        measured: (round) => round,
      });
      results.set(load.name, outcome.figures);
      failures.push(...outcome.failures);
    } finally {
      await source.close();
    }
  }
  if (options.scale === 1) failures.push(...brokenPromises(results));
  else console.log('\nnot of full size: nothing is promised of it');
  return { results, failures };
}

/** Writes the transaction for a reader, and leaves no file behind. */
async function turn(
  task: LargeTask,
  reader: LargeReader,
  expected: () => Promise<Expected>,
): Promise<Figures> {
  try {
    return await readOnce(task, reader, expected);
  } finally {
    await rm(SPILL_FOLDER, { recursive: true, force: true });
  }
}

function thatFit(
  readers: readonly LargeReader[],
  load: LargeLoad,
): LargeReader[] {
  return readers.filter((reader) => {
    const found = fits(reader, load);
    if (!found)
      console.log(`  ${reader.name}: left out, does not fit into memory`);
    return found;
  });
}
