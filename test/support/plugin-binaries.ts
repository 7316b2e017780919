import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import path from 'node:path';
import { promisify } from 'node:util';
import {
  type Binaries,
  runnableBy,
  type ServerUser,
} from './postgres-binaries.js';

const run = promisify(execFile);

const PROJECT = path.dirname(
  createRequire(import.meta.url).resolve('nestjs-replicant/package.json'),
);
const FOLDER = path.join(PROJECT, '.build', 'plugin-server');
const SCRIPT = path.join(PROJECT, 'test', 'support', 'build-plugin-server.sh');

/** Makes the PostgreSQL that has wal2json and pglogical, unless it is there already. */
export async function buildPluginServer(): Promise<void> {
  await run(SCRIPT, [FOLDER]);
}

/** Finds the binaries of that PostgreSQL. */
export function findPluginBinaries(
  user: ServerUser,
  spare: string,
): Promise<Binaries> {
  const bin = path.join(FOLDER, 'lib', 'postgresql', '17', 'bin');
  const binaries = {
    postgres: path.join(bin, 'postgres'),
    initdb: path.join(bin, 'initdb'),
    pgCtl: path.join(bin, 'pg_ctl'),
  };
  return runnableBy(user, binaries, FOLDER, spare);
}
