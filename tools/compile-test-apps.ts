import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';

const OUT = '.build/apps';

/**
 * Compiles the applications in `test/apps`, and the samples that a test runs, to `.build/apps`. They run as child processes
 * because a test kills them, and Node runs no TypeScript with decorators by itself.
 */
export function setup(): void {
  if (!existsSync('test/apps')) return;
  execFileSync(
    process.execPath,
    ['node_modules/typescript/bin/tsc', '-p', 'test/tsconfig.apps.json'],
    { stdio: 'inherit' },
  );
  // A sample imports the package by its name, which leads to what was compiled with it.
  mkdirSync(OUT, { recursive: true });
  const manifest = {
    name: 'nestjs-replicant',
    type: 'module',
    exports: { '.': './lib/index.js', './terminus': './lib/health/index.js' },
  };
  writeFileSync(`${OUT}/package.json`, JSON.stringify(manifest));
}
