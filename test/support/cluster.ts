import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  appendFileSync,
  chownSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { mkdtemp, readdir, realpath, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import {
  type Binaries,
  findBinaries as findInstalled,
  type FindBinaries,
  type ServerUser,
  serverUser,
} from './postgres-binaries.js';
import type { ServerCertificate } from './server-certificate.js';

const run = promisify(execFile);

/** Values of postgresql.conf. */
export type ServerSettings = Readonly<Record<string, string | number>>;

/** Name of the superuser. */
export const SUPERUSER = 'postgres';

/** The data of a cluster that was initialised and never ran. */
export interface ClusterTemplate {
  readonly dataFolder: string;
  /** Of the superuser. */
  readonly password: string;
}

/** The files of one server, in a temporary folder that goes at the latest when this process ends. */
export class Cluster {
  private constructor(
    /** Also the folder of the Unix socket. */
    readonly folder: string,
    /** User that the server runs as. */
    readonly user: ServerUser,
    /** Of the superuser. */
    readonly password: string,
    private readonly guard: ChildProcess,
    private readonly findBinaries: FindBinaries,
  ) {}

  /** Creates the folder and watches over it. */
  static async create(
    password = randomBytes(12).toString('hex'),
    findBinaries: FindBinaries = findInstalled,
  ): Promise<Cluster> {
    const user = serverUser();
    const folder = await mkdtemp(
      path.join(await realpath(tmpdir()), 'replicant-'),
    );
    own(folder, user);
    return new Cluster(folder, user, password, watchOver(folder), findBinaries);
  }

  get dataFolder(): string {
    return path.join(this.folder, 'data');
  }

  get logFile(): string {
    return path.join(this.folder, 'server.log');
  }

  get majorVersion(): number {
    return Number.parseInt(this.#read('PG_VERSION'), 10);
  }

  /** Runs initdb. */
  async initialise(): Promise<Binaries> {
    const binaries = await this.findBinaries(this.user, this.folder);
    const passwordFile = path.join(this.folder, 'password');
    this.#write(passwordFile, `${this.password}\n`);
    await run(
      binaries.initdb,
      [
        `--pgdata=${this.dataFolder}`,
        `--username=${SUPERUSER}`,
        `--pwfile=${passwordFile}`,
        '--auth=scram-sha-256',
        '--encoding=UTF8',
        '--no-locale',
        '--no-sync',
        '--no-instructions',
      ],
      {
        ...this.user,
        cwd: this.folder,
        env: { ...process.env, LC_ALL: 'C' },
      },
    );
    await rm(passwordFile);
    return binaries;
  }

  /** Copies data instead of running initdb. The password must be that of the original. */
  async copyOf({ dataFolder }: ClusterTemplate): Promise<Binaries> {
    const binaries = await this.findBinaries(this.user, this.folder);
    await run('cp', ['-a', dataFolder, this.dataFolder]);
    return binaries;
  }

  /** Copies the data of a server that is down, without its slots, for a standby. */
  async standbyOf(original: Cluster): Promise<Binaries> {
    const binaries = await this.copyOf(original);
    const slots = path.join(this.dataFolder, 'pg_replslot');
    for (const name of await readdir(slots))
      await rm(path.join(slots, name), { recursive: true });
    this.#write(path.join(this.dataFolder, 'standby.signal'), '');
    return binaries;
  }

  configure(settings: ServerSettings): void {
    const lines = Object.entries(settings).map(
      ([name, value]) => `${name} = '${String(value).replaceAll("'", "''")}'\n`,
    );
    appendFileSync(
      path.join(this.dataFolder, 'postgresql.conf'),
      lines.join(''),
    );
  }

  configureTls({ certificate, key }: ServerCertificate): void {
    this.#write(path.join(this.dataFolder, 'server.crt'), certificate);
    this.#write(path.join(this.dataFolder, 'server.key'), key);
    this.configure({ ssl: 'on' });
  }

  /** Whether the postmaster with this process id serves clients; this is what pg_ctl waits for. */
  isReady(pid: number | undefined): boolean {
    try {
      const lines = this.#read('postmaster.pid').split('\n');
      return lines[0]?.trim() === String(pid) && lines[7]?.trim() === 'ready';
    } catch {
      return false;
    }
  }

  /** Deletes everything. The server must be down. */
  async remove(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true, maxRetries: 20 });
    this.guard.stdin?.end();
    this.guard.ref();
    if (this.guard.exitCode === null && this.guard.signalCode === null) {
      await once(this.guard, 'exit');
    }
  }

  #read(name: string): string {
    return readFileSync(path.join(this.dataFolder, name), 'utf8');
  }

  #write(file: string, content: string): void {
    writeFileSync(file, content, { mode: 0o600 });
    own(file, this.user);
  }
}

function own(file: string, { uid, gid }: ServerUser): void {
  if (uid !== undefined && gid !== undefined) chownSync(file, uid, gid);
}

/** Also when this process is killed, nothing stays: the guard notices, stops the server and deletes the folder. */
function watchOver(folder: string): ChildProcess {
  const project = path.dirname(
    createRequire(import.meta.url).resolve('nestjs-replicant/package.json'),
  );
  const script = path.join(project, 'test', 'support', 'orphan-guard.mjs');
  const guard = spawn(process.execPath, [script, folder], {
    detached: true,
    windowsHide: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    env: {},
  });
  guard.unref();
  // A process that waits for nothing else may end.
  if (guard.stdin instanceof Socket) guard.stdin.unref();
  guard.stdin.on('error', () => {});
  return guard;
}
