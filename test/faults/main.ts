import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { endWhenInterrupted, exitCodeOf } from '../support/command-line.js';
import { type FaultsOptions, readOptions, USAGE } from './faults-options.js';
import { readFindings } from './findings.js';
import { planRounds } from './plan.js';
import { play } from './play.js';
import { complaints, type FaultsReport } from './report.js';
import { Stage } from './stage.js';

process.exitCode = await exitCodeOf(USAGE, () =>
  faults(readOptions(process.argv.slice(2))),
);

/** Injects faults into an application between servers of its own, and gives the exit code. */
async function faults(options: FaultsOptions): Promise<number> {
  const tell = options.json ? console.error : console.log;
  const folder = mkdtempSync(path.join(tmpdir(), 'replicant-faults-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  endWhenInterrupted();
  tell(`seed ${options.seed}`);
  const report = await rounds(options, path.join(folder, 'findings'), tell);
  const wrong = complaints(report);
  for (const finding of report.findings) tell(`found: ${finding}`);
  for (const complaint of wrong) tell(`FAILED ${complaint}`);
  console.log(
    options.json
      ? JSON.stringify(report)
      : `${report.rounds} rounds: ${wrong.length === 0 ? 'ok' : 'FAILED'}`,
  );
  return wrong.length === 0 ? 0 : 1;
}

async function rounds(
  { seed, rounds: count }: FaultsOptions,
  findingsFile: string,
  tell: (line: string) => void,
): Promise<FaultsReport> {
  const start = performance.now();
  const stage = await Stage.create(findingsFile);
  try {
    await stage.start().says('streaming');
    const played = await play(stage, planRounds(seed, count), tell);
    if (stage.application.running) {
      stage.application.close();
      await stage.ended();
    }
    const { missing, extra, different, appliedTwice, transactions } =
      played.comparison;
    return {
      rounds: played.rounds,
      missing,
      extra,
      different,
      appliedTwice,
      ...readFindings(findingsFile),
      failedRounds: played.failure === null ? 0 : 1,
      seed,
      transactions,
      applications: stage.started,
      reconnects: stage.reconnects,
      faults: played.faults,
      seconds: Math.round((performance.now() - start) / 1000),
    };
  } finally {
    await stage.remove();
  }
}
