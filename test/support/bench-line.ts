import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Runs a bench from the command line, once and with few rows, and gives the last line that it prints. */
export async function benchLine(
  bench: string,
  load: string,
  readers: readonly string[],
): Promise<string> {
  const { stdout } = await run(
    'npm',
    [
      'run',
      '--silent',
      'bench',
      '--',
      bench,
      '--rounds=1',
      '--scale=0.002',
      `--only=${load}`,
      `--readers=${readers.join(',')}`,
    ],
    { shell: process.platform === 'win32' },
  );
  return stdout.trimEnd().split('\n').at(-1) ?? '';
}
