import { present } from '../support/present.js';
import { choose } from './bench-options.js';
import type { BenchOutcome, BenchRun } from './bench-run.js';
import { type Load, planLoads } from './loads.js';
import { measure } from './measure.js';
import { allReaders } from './readers/index.js';
import type { Reader } from './readers/reader.js';
import { type Figures, medians, type Results } from './report.js';
import { type Expected, Source } from './source.js';

/** Every reader reads the same WAL, in turns. */
export async function consume(run: BenchRun): Promise<BenchOutcome> {
  const { options, congestionControl, server } = run;
  const loads = choose(
    planLoads(options.scale, congestionControl.choices),
    options.only,
  );
  const readers = await presentReaders(options.readers);
  const results: Results = new Map();
  const failures: string[] = [];
  for (const workload of new Set(loads.map((load) => load.workload))) {
    const source = await Source.create(server);
    try {
      await source.write(workload);
      const expected = await source.expected();
      console.log(
        `\n${workload.name}: ${expected.rows} rows in ${expected.transactions} transactions, ${expected.messages} messages`,
      );
      for (const load of loads) {
        if (load.workload !== workload) continue;
        const turns = new Turns(run, load, readers, source, expected);
        results.set(load.name, await turns.take());
        failures.push(...turns.failures);
      }
    } finally {
      await source.close();
    }
  }
  return { results, failures };
}

async function presentReaders(
  wanted: readonly string[] | null,
): Promise<Reader[]> {
  const found: Reader[] = [];
  for (const reader of choose(allReaders(), wanted)) {
    const absent = await reader.prepare();
    if (absent === null) found.push(reader);
    console.log(
      absent === null
        ? `reader ${reader.name}: ${reader.options}`
        : `reader ${reader.name}: ABSENT, ${absent}`,
    );
  }
  return found;
}

/** The runs of one load. */
class Turns {
  readonly failures: string[] = [];
  readonly #runs = new Map<string, Figures[]>();

  constructor(
    private readonly run: BenchRun,
    private readonly load: Load,
    private readonly readers: readonly Reader[],
    private readonly source: Source,
    private readonly expected: Expected,
  ) {}

  /** In every round each reader has one turn, and a round begins one reader further than the one before. */
  async take(): Promise<Map<string, Figures>> {
    const { load, run, source } = this;
    run.congestionControl.use(load.congestionControl);
    await source.limitSilence(load.walSenderTimeout);
    console.log(
      `load ${load.name}: ${load.transport} on loopback, congestion control ${run.congestionControl.current ?? 'unknown'}, wal_sender_timeout ${load.walSenderTimeout}${load.slowSink ? ', slow sink' : ''}`,
    );
    const readers = this.readers.filter(
      ({ hasSink }) => hasSink || !load.slowSink,
    );
    for (let round = 0; round < run.options.rounds; round++) {
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

  async #turn(reader: Reader, round: number): Promise<void> {
    const { load, run, source, expected } = this;
    try {
      const figures = await measure(run.server, reader, {
        load,
        source,
        expected,
        certificate: present(run.server.certificate),
        cores: run.cores,
      });
      const runs = this.#runs.get(reader.name) ?? [];
      this.#runs.set(reader.name, [...runs, figures]);
      console.log(
        `  round ${round + 1}  ${reader.name.padEnd(24)} ${figures['wallSeconds']?.toFixed(3)} s`,
      );
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.failures.push(`${load.name}, ${reader.name}: ${reason}`);
      console.log(`  round ${round + 1}  ${reader.name.padEnd(24)} FAILED`);
    }
  }
}
