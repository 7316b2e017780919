import { setTimeout as sleep } from 'node:timers/promises';
import { present } from '../support/present.js';
import { choose } from './bench-options.js';
import type { BenchOutcome, BenchRun } from './bench-run.js';
import {
  NodeChild,
  numbersIn,
  programPath,
  sourceSettings,
} from './child-process.js';
import type { Figures, Results } from './report.js';
import { Source } from './source.js';

const TRANSACTIONS_PER_SECOND = 100;
const TRANSACTIONS = 6_000;
/** Before the readers are compiled by Node.js as they will be. */
const WARM_UP = 500;

const READERS = [
  { name: 'nestjs-replicant', script: 'delay-application.js' },
  { name: 'raw', script: 'delay-raw.js' },
] as const;

type DelayReader = (typeof READERS)[number];

/** All readers see the same commits: how long after the commit does each of them? */
export async function delay(run: BenchRun): Promise<BenchOutcome> {
  const { options, congestionControl } = run;
  const loads = choose(
    congestionControl.choices.map((algorithm, index) => ({
      name: index === 0 ? 'commits100' : `commits100-${algorithm}`,
      algorithm,
    })),
    options.only,
  );
  const readers = choose(READERS, options.readers);
  const transactions = Math.max(1, Math.round(TRANSACTIONS * options.scale));
  const results: Results = new Map();
  for (const { name, algorithm } of loads) {
    congestionControl.use(algorithm);
    console.log(
      `load ${name}: ${transactions} single-row transactions, ${TRANSACTIONS_PER_SECOND} a second, after ${WARM_UP} to warm up; TCP on loopback, congestion control ${congestionControl.current ?? 'unknown'}`,
    );
    results.set(name, await watch(run, readers, transactions));
  }
  return { results, failures: [] };
}

async function watch(
  { server, cores }: BenchRun,
  readers: readonly DelayReader[],
  transactions: number,
): Promise<Map<string, Figures>> {
  const source = await Source.create(server);
  const children: { readonly name: string; readonly child: NodeChild }[] = [];
  try {
    for (const [index, { name, script }] of readers.entries()) {
      const slot = `bench_copy_${index}`;
      await source.copySlot(slot);
      const settings = {
        ...sourceSettings(
          source,
          { transport: 'TCP' },
          slot,
          present(server.certificate),
        ),
        TRANSACTIONS: String(transactions),
        WARM_UP: String(WARM_UP),
      };
      const child = new NodeChild(programPath(script), settings, cores);
      children.push({ name, child });
    }
    await Promise.all(children.map(({ child }) => child.started()));
    await writeEvenly(source, transactions + WARM_UP);
    const figures = new Map<string, Figures>();
    for (const { name, child } of children) {
      const told = await child.result();
      figures.set(name, numbersIn(told, ['transactions', 'p50Ms', 'p99Ms']));
    }
    return figures;
  } finally {
    for (const { child } of children) child.kill();
    await source.close();
  }
}

/** A machine that is too slow for the rate delays the readers too: it is said how fast it was. */
async function writeEvenly(source: Source, count: number): Promise<void> {
  const start = performance.now();
  for (let id = 1; id <= count; id++) {
    const due = start + (id * 1000) / TRANSACTIONS_PER_SECOND;
    await sleep(Math.max(0, due - performance.now()));
    await source.writeOne(id);
  }
  const seconds = (performance.now() - start) / 1000;
  console.log(`  written at ${(count / seconds).toFixed(1)} a second`);
}
