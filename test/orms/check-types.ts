import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** Compiles what the documentation shows: the check of the checkout has not these libraries. */
export default function checkTypes(): void {
  execFileSync(
    process.execPath,
    ['../../node_modules/typescript/bin/tsc', '--noEmit', '--project', '.'],
    {
      cwd: fileURLToPath(new URL('.', import.meta.url)),
      stdio: ['ignore', 'inherit', 'inherit'],
    },
  );
}
