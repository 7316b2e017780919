// @ts-check
// npm run check: everything that is no test. Stops at the first step that fails.

import { spawnSync } from 'node:child_process';

/** @type {readonly (readonly [name: string, command: string, ...args: string[]])[]} */
const STEPS = [
  ['prettier', 'npx', 'prettier', '--check', '--log-level', 'warn', '.'],
  ['oxlint', 'npx', 'oxlint', '--type-aware', '--deny-warnings'],
  ['tsc', 'npx', 'tsc'],
  ['import rule', 'node', 'tools/check-imports.mjs'],
  ['docs', 'node', 'tools/check-docs.mjs'],
  ['build', 'npm', 'run', '--silent', 'build'],
  ['publint', 'npx', 'publint', '--strict'],
  [
    'attw',
    'npm',
    'exec',
    '--yes',
    '--prefer-offline',
    '--package=@arethetypeswrong/cli@0.18.5',
    '--',
    'attw',
    '--pack',
    '--profile',
    'esm-only',
  ],
  ['packed', 'node', 'tools/check-package.mjs'],
];

for (const [name, command, ...args] of STEPS) {
  const start = performance.now();
  const { status } = spawnSync(command, args, {
    stdio: 'inherit',
    shell: process.platform === 'win32',
  });
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  console.log(`${status === 0 ? 'ok' : 'FAILED'}  ${name}  ${seconds} s`);
  if (status !== 0) process.exit(1);
}
