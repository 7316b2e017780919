// @ts-check
// Packs the tarball, installs it with its peers in an empty project, and loads and type-checks it from there.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** @type {{ name: string, exports: Record<string, unknown>, peerDependencies: Record<string, string>, devDependencies: Record<string, string> }} */
const manifest = JSON.parse(readFileSync('package.json', 'utf8'));

const entries = Object.keys(manifest.exports)
  .filter((path) => path !== './package.json')
  .map((path) => path.replace('.', manifest.name));

/** As a newcomer writes it: the names that the README shows must be there, with types. */
const CONSUMER = `
import { Module } from '@nestjs/common';
import { formatLsn, ReplicantModule, type Transaction } from 'nestjs-replicant';
import { ReplicantHealthIndicator } from 'nestjs-replicant/terminus';

@Module({
  imports: [ReplicantModule.forRoot({ connection: 'postgres:///', slotName: 's', publication: 'p' })],
  providers: [ReplicantHealthIndicator],
})
export class AppModule {}
export const position = (tx: Transaction): string => formatLsn(tx.commitLsn);
`;

const project = mkdtempSync(join(tmpdir(), 'replicant-package-'));

/** @param {string} command @param {string[]} args @param {string} cwd */
const run = (command, args, cwd = project) =>
  execFileSync(command, args, {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    shell: process.platform === 'win32',
  });

/** @param {string} name */
const pinned = (name) => `${name}@${manifest.devDependencies[name]}`;

try {
  /** @type {[{ filename: string, files: { path: string }[], size: number }]} */
  const [pack] = JSON.parse(
    run('npm', ['pack', '--json', '--pack-destination', project], '.'),
  );
  const paths = pack.files.map((file) => file.path);
  const stray = paths.filter(
    (path) =>
      /\.spec\./.test(path) ||
      !/^(dist\/|docs\/|package\.json$|README\.md$|LICENSE$|CHANGELOG\.md$)/.test(
        path,
      ),
  );
  if (stray.length > 0) {
    throw new Error(`The tarball holds ${stray.join(', ')}`);
  }
  for (const needed of ['LICENSE', 'README.md', 'CHANGELOG.md']) {
    if (!paths.includes(needed)) throw new Error(`The tarball lacks ${needed}`);
  }

  writeFileSync(join(project, 'package.json'), '{ "private": true }');
  run('npm', [
    'install',
    '--prefer-offline',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
    `./${pack.filename}`,
    ...Object.keys(manifest.peerDependencies).map(pinned),
    ...['typescript', '@types/node', '@types/pg'].map(pinned),
  ]);

  const load = entries
    .map((entry) => `check(await import('${entry}'));`)
    .join('\n');
  const check = `const check = (names) => { if (Object.keys(names).length === 0) throw new Error('exports nothing'); };`;
  writeFileSync(join(project, 'load.mjs'), `${check}\n${load}\n`);
  run('node', ['load.mjs']);
  writeFileSync(
    join(project, 'load.cjs'),
    `${check}\n${load.replaceAll('await import', 'require')}\n`,
  );
  run('node', ['load.cjs']);

  for (const extension of ['mts', 'cts']) {
    writeFileSync(join(project, `consumer.${extension}`), CONSUMER);
  }
  run('npx', [
    'tsc',
    '--noEmit',
    '--strict',
    '--module',
    'NodeNext',
    '--target',
    'ES2023',
    '--experimentalDecorators',
    '--emitDecoratorMetadata',
    'consumer.mts',
    'consumer.cts',
  ]);
  console.log(
    `${paths.length} files, ${Math.round(pack.size / 1024)} kB; ${entries.join(' and ')} load by import and by require`,
  );
} finally {
  rmSync(project, { recursive: true });
}
