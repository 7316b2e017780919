import { present } from '../support/present.js';
import type { BenchOutcome, BenchRun } from './bench-run.js';
import type { Load } from './loads.js';
import { measure } from './measure.js';
import type { Reader } from './readers/reader.js';
import type { Results } from './report.js';
import { type Prepare, Source } from './source.js';
import { takeTurns } from './turns.js';

/**
 * Lets every reader read the same WAL, in turns.
 *
 * @param prepare makes the source ready for what the readers need
 */
export async function readLoads(
  run: BenchRun,
  loads: readonly Load[],
  readers: readonly Reader[],
  prepare?: Prepare,
): Promise<BenchOutcome> {
  const { options, congestionControl, server } = run;
  const results: Results = new Map();
  const failures: string[] = [];
  for (const workload of new Set(loads.map((load) => load.workload))) {
    const source = await Source.create(server, prepare);
    try {
      await source.write(workload);
      const expected = await source.expected();
      console.log(
        `\n${workload.name}: ${expected.rows} rows in ${expected.transactions} transactions, ${expected.messages} messages`,
      );
      for (const load of loads) {
        if (load.workload !== workload) continue;
        congestionControl.use(load.congestionControl);
        await source.limitSilence(load.walSenderTimeout);
        console.log(
          `load ${load.name}: ${load.transport} on loopback, congestion control ${congestionControl.current ?? 'unknown'}, wal_sender_timeout ${load.walSenderTimeout}${load.slowSink ? ', slow sink' : ''}`,
        );
        const outcome = await takeTurns({
          load: load.name,
          readers: readers.filter(({ hasSink }) => hasSink || !load.slowSink),
          rounds: options.rounds,
          read: (reader) =>
            measure(server, reader, {
              load,
              source,
              expected,
              certificate: present(server.certificate),
              cores: run.cores,
            }),
          describe: ({ wallSeconds }) => `${wallSeconds?.toFixed(3)} s`,
          measured: (round) => round,
        });
        results.set(load.name, outcome.figures);
        failures.push(...outcome.failures);
      }
    } finally {
      await source.close();
    }
  }
  return { results, failures };
}
