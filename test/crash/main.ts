import { endWhenInterrupted, exitCodeOf } from '../support/command-line.js';
import { type CrashOptions, readOptions, USAGE } from './crash-options.js';
import type { ModeName } from './modes.js';
import { play } from './play.js';
import { complaints, type ModeReport } from './report.js';
import { playable, Servers } from './servers.js';

/** Modes at a time: each of them waits most of the time. */
const AT_A_TIME = 2;

process.exitCode = await exitCodeOf(USAGE, () =>
  crash(readOptions(process.argv.slice(2))),
);

/** Kills applications on servers of its own, and gives the exit code. */
async function crash(options: CrashOptions): Promise<number> {
  const tell = options.json ? console.error : console.log;
  endWhenInterrupted();
  tell(`seed ${options.seed}`);
  const reports = await playAll(options, tell);
  const wrong = reports.flatMap(([mode, report]) =>
    complaints(mode, report).map((complaint) => `${mode}: ${complaint}`),
  );
  if (!options.json)
    for (const [mode, report] of reports)
      tell(`${mode}: ${JSON.stringify(report)}`);
  for (const complaint of wrong) tell(`FAILED ${complaint}`);
  console.log(
    options.json
      ? JSON.stringify({
          modes: Object.fromEntries(reports),
          seed: options.seed,
        })
      : `${reports.length} modes: ${wrong.length === 0 ? 'ok' : 'FAILED'}`,
  );
  return wrong.length === 0 ? 0 : 1;
}

/** Plays the modes, and gives their reports in the same order. */
async function playAll(
  options: CrashOptions,
  tell: (line: string) => void,
): Promise<[ModeName, ModeReport][]> {
  const modes = await playable(options.modes, tell);
  const servers = new Servers();
  try {
    const reports: [ModeName, ModeReport][] = [];
    // One iterator: who is done takes the next.
    const left = modes.entries();
    const playNext = async (): Promise<void> => {
      for (const [index, mode] of left)
        reports[index] = [
          mode,
          await play(await servers.of(mode), mode, options, tell),
        ];
    };
    await Promise.all(Array.from({ length: AT_A_TIME }, playNext));
    return reports;
  } finally {
    await servers.remove();
  }
}
