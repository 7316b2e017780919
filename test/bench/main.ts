import { endWhenInterrupted, exitCodeOf } from '../support/command-line.js';
import {
  describeServer,
  startBenchServer,
  startPluginBenchServer,
} from './bench-server.js';
import { type BenchOptions, readOptions, USAGE } from './bench-options.js';
import { CongestionControl } from './congestion-control.js';
import { consume } from './consume.js';
import { findCores } from './cores.js';
import { decoders } from './decoders/decoders.js';
import { delay } from './delay.js';
import { large } from './large/large.js';
import { closingLine, table } from './report.js';
import { snapshot } from './snapshot/snapshot.js';

const BENCHES = { consume, decoders, delay, snapshot, large };

process.exitCode = await exitCodeOf(USAGE, () =>
  bench(readOptions(process.argv.slice(2))),
);

/** Runs a bench on a server of its own, and gives the exit code. */
async function bench(options: BenchOptions): Promise<number> {
  const congestionControl = new CongestionControl();
  endWhenInterrupted(() => congestionControl.restore());
  const cores = findCores();
  const server = await (
    options.bench === 'decoders' ? startPluginBenchServer : startBenchServer
  )(cores);
  try {
    console.log(await describeServer(server, cores));
    const setup = { options, server, cores, congestionControl };
    const { results, failures } = await BENCHES[options.bench](setup);
    console.log(`\n${table(results)}\n`);
    for (const failure of failures) console.error(`FAILED ${failure}`);
    console.log(closingLine(options.bench, results));
    return failures.length === 0 ? 0 : 1;
  } finally {
    congestionControl.restore();
    await server.remove();
  }
}
