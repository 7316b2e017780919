import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';

/**
 * Compiles the applications in `test/apps` to `.build/apps`. They run as child processes because a test kills them,
 * and Node runs no TypeScript with decorators by itself.
 */
export function setup(): void {
  if (!existsSync('test/apps')) return;
  execFileSync(
    process.execPath,
    ['node_modules/typescript/bin/tsc', '-p', 'test/tsconfig.apps.json'],
    { stdio: 'inherit' },
  );
}
