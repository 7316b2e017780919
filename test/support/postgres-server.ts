import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  appendFileSync,
  chownSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { mkdtemp, open, realpath, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { platform, tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Client, type QueryResultRow } from 'pg';
import { freePort } from './free-port.js';
import {
  type Binaries,
  findBinaries,
  type ServerUser,
  serverUser,
} from './postgres-binaries.js';
import { createServerCertificate } from './server-certificate.js';
import { TestDatabase } from './test-database.js';

const run = promisify(execFile);

/** Values of postgresql.conf. */
export type ServerSettings = Readonly<Record<string, string | number>>;

export interface ServerOptions {
  /** Added to postgresql.conf. */
  readonly settings?: ServerSettings;
  /** Accept TLS with a self-signed certificate; connections without it stay possible. @default false */
  readonly tls?: boolean;
}

/** Where a server listens, and its superuser. */
export interface ServerConnection {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
}

/** `smart` waits for clients, `fast` throws them out, `immediate` crashes: the next start recovers. */
export type StopMode = 'smart' | 'fast' | 'immediate';

const STOP_SIGNALS = {
  smart: 'SIGTERM',
  fast: 'SIGINT',
  immediate: 'SIGQUIT',
} as const satisfies Record<StopMode, NodeJS.Signals>;

const SETTINGS: ServerSettings = {
  listen_addresses: '127.0.0.1',
  wal_level: 'logical',
  max_replication_slots: 40,
  max_wal_senders: 40,
  max_prepared_transactions: 10,
  wal_sender_timeout: '60s',
  fsync: 'off',
  log_replication_commands: 'on',
};

/** In files of the data folder, so that a killed server leaves no shared memory behind. */
const POSIX_SETTINGS: ServerSettings = { dynamic_shared_memory_type: 'mmap' };

const USER = 'postgres';
const HOST = '127.0.0.1';
const START_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 30_000;
const PORT_TRIES = 10;
const LOG_TAIL_LINES = 25;

/** A real PostgreSQL server with a data folder of its own, which goes when the server or this process does. */
export class PostgresServer {
  /** PEM; `null` without TLS. */
  readonly certificate: string | null;
  readonly majorVersion: number;
  #process: ChildProcess | null = null;
  #port: number;
  #crashed = false;

  private constructor(
    private readonly folder: string,
    private readonly binaries: Binaries,
    private readonly runAs: ServerUser,
    private readonly guard: ChildProcess,
    private readonly password: string,
    facts: { certificate: string | null; port: number },
  ) {
    this.certificate = facts.certificate;
    this.#port = facts.port;
    this.majorVersion = Number.parseInt(
      readFileSync(path.join(this.dataFolder, 'PG_VERSION'), 'utf8'),
      10,
    );
  }

  /** Creates a cluster and starts it. */
  static async start(options: ServerOptions = {}): Promise<PostgresServer> {
    const runAs = serverUser();
    const folder = await createFolder(runAs);
    const guard = watchOver(folder);
    try {
      const binaries = await findBinaries(runAs, folder);
      const password = randomBytes(12).toString('hex');
      await initialise(binaries, folder, runAs, password);
      const certificate =
        options.tls === true ? createServerCertificate() : null;
      const server = new PostgresServer(
        folder,
        binaries,
        runAs,
        guard,
        password,
        {
          certificate: certificate?.certificate ?? null,
          port: await freePort(),
        },
      );
      server.#configure({
        ...SETTINGS,
        ...(platform() === 'win32' ? {} : POSIX_SETTINGS),
        unix_socket_directories: platform() === 'win32' ? '' : folder,
        ...options.settings,
      });
      if (certificate !== null) server.#configureTls(certificate);
      await server.#boot({ portMayChange: true });
      return server;
    } catch (error) {
      await dispose(folder, guard);
      throw error;
    }
  }

  get connection(): ServerConnection {
    return {
      host: HOST,
      port: this.#port,
      user: USER,
      password: this.password,
    };
  }

  /** Folder of the Unix socket, to be given as host; `null` on Windows. */
  get socketFolder(): string | null {
    return platform() === 'win32' ? null : this.folder;
  }

  get running(): boolean {
    return this.#process !== null;
  }

  /** Process id of the postmaster; `null` while it does not run. */
  get pid(): number | null {
    return this.#process?.pid ?? null;
  }

  get dataFolder(): string {
    return path.join(this.folder, 'data');
  }

  /** Creates a database with a name of its own. */
  async createDatabase(prefix = 'test'): Promise<TestDatabase> {
    const name = `${prefix}_${randomBytes(5).toString('hex')}`;
    await this.query(`CREATE DATABASE "${name}"`);
    return new TestDatabase(this, name);
  }

  /** Runs one statement in the database `postgres`. */
  async query<R extends QueryResultRow = QueryResultRow>(
    sql: string,
    values: readonly unknown[] = [],
  ): Promise<R[]> {
    const client = new Client({ ...this.connection, database: 'postgres' });
    await client.connect();
    try {
      const result = await client.query<R>(sql, [...values]);
      return result.rows;
    } finally {
      await client.end();
    }
  }

  /**
   * Stops the server and keeps its data.
   *
   * @param timeout milliseconds; when they are over the server still runs
   */
  async stop(
    mode: StopMode = 'fast',
    timeout = STOP_TIMEOUT_MS,
  ): Promise<void> {
    const child = this.#process;
    if (child === null) return;
    if (platform() === 'win32') {
      await run(this.binaries.pgCtl, [
        'stop',
        '-W',
        '-m',
        mode,
        '-D',
        this.dataFolder,
      ]);
    } else {
      child.kill(STOP_SIGNALS[mode]);
    }
    await this.#exitOf(child, timeout);
  }

  /** Starts it again: same data, same port. */
  async startAgain(): Promise<void> {
    if (this.#process !== null) throw new Error('The server runs already.');
    await this.#boot({ portMayChange: false });
  }

  async restart(mode: StopMode = 'fast'): Promise<void> {
    await this.stop(mode);
    await this.startAgain();
  }

  /** Kills the postmaster with SIGKILL: no checkpoint, no farewell to clients. */
  async kill(): Promise<void> {
    const child = this.#process;
    if (child === null) return;
    this.#crashed = true;
    child.kill('SIGKILL');
    await this.#exitOf(child, STOP_TIMEOUT_MS);
  }

  /** Stops the server and deletes its data. */
  async remove(): Promise<void> {
    try {
      // Only the next start frees the shared memory segment of a server that was killed.
      if (this.#crashed) await this.startAgain();
      await this.stop('immediate');
    } finally {
      this.#process?.kill('SIGKILL');
      await dispose(this.folder, this.guard);
    }
  }

  /** All that the server has logged. */
  log(): string {
    return readFileSync(this.#logFile, 'utf8');
  }

  get #logFile(): string {
    return path.join(this.folder, 'server.log');
  }

  #configure(settings: ServerSettings): void {
    const lines = Object.entries(settings).map(
      ([name, value]) => `${name} = '${String(value).replaceAll("'", "''")}'\n`,
    );
    appendFileSync(
      path.join(this.dataFolder, 'postgresql.conf'),
      lines.join(''),
    );
  }

  #configureTls({
    certificate,
    key,
  }: {
    certificate: string;
    key: string;
  }): void {
    for (const [name, content] of [
      ['server.crt', certificate],
      ['server.key', key],
    ] as const) {
      const file = path.join(this.dataFolder, name);
      writeFileSync(file, content, { mode: 0o600 });
      own(file, this.runAs);
    }
    this.#configure({ ssl: 'on' });
  }

  async #boot({ portMayChange }: { portMayChange: boolean }): Promise<void> {
    const end = performance.now() + START_TIMEOUT_MS;
    for (let tries = 1; ; tries++) {
      const before = this.#logSize();
      if (await this.#bootOnce(end)) {
        this.#crashed = false;
        return;
      }
      const said = this.log().slice(before);
      const portTaken = /could not bind|could not create any TCP/.test(said);
      // Processes of a killed server need a moment to notice and end.
      const leftovers = /pre-existing shared memory block/.test(said);
      const again = leftovers
        ? performance.now() < end
        : portTaken && tries < PORT_TRIES;
      if (!again) throw this.#error('The server ended while it started.');
      if (portTaken && portMayChange) this.#port = await freePort();
      await sleep(50);
    }
  }

  async #bootOnce(end: number): Promise<boolean> {
    const log = await open(this.#logFile, 'a', 0o600);
    const child = spawn(
      this.binaries.postgres,
      ['-D', this.dataFolder, '-p', String(this.#port)],
      {
        ...this.runAs,
        cwd: this.folder,
        env: { ...process.env, LC_ALL: 'C' },
        // A session of its own: the Ctrl-C of a terminal is for this process, which then decides.
        detached: true,
        windowsHide: true,
        stdio: ['ignore', log.fd, log.fd],
      },
    );
    try {
      await once(child, 'spawn');
    } finally {
      await log.close();
    }
    this.#process = child;
    child.unref();
    child.once('exit', () => {
      if (this.#process === child) this.#process = null;
    });
    while (!this.#isReady(child)) {
      if (this.#process !== child) return false;
      if (performance.now() > end)
        throw this.#error('The server did not get ready.');
      await sleep(10);
    }
    return true;
  }

  /** The eighth line of postmaster.pid says what pg_ctl waits for; the first whose it is. */
  #isReady(child: ChildProcess): boolean {
    try {
      const lines = readFileSync(
        path.join(this.dataFolder, 'postmaster.pid'),
        'utf8',
      ).split('\n');
      return (
        lines[7]?.trim() === 'ready' && lines[0]?.trim() === String(child.pid)
      );
    } catch {
      return false;
    }
  }

  async #exitOf(child: ChildProcess, timeout: number): Promise<void> {
    const end = performance.now() + timeout;
    while (this.#process === child) {
      if (performance.now() > end)
        throw this.#error(`The server did not stop within ${timeout} ms.`);
      await sleep(5);
    }
  }

  #logSize(): number {
    try {
      return this.log().length;
    } catch {
      return 0;
    }
  }

  #error(what: string): Error {
    const tail = this.log()
      .trimEnd()
      .split('\n')
      .slice(-LOG_TAIL_LINES)
      .join('\n');
    return new Error(`${what} The end of its log:\n${tail}`);
  }
}

async function createFolder(runAs: ServerUser): Promise<string> {
  const folder = await mkdtemp(
    path.join(await realpath(tmpdir()), 'replicant-'),
  );
  own(folder, runAs);
  return folder;
}

function own(file: string, { uid, gid }: ServerUser): void {
  if (uid !== undefined && gid !== undefined) chownSync(file, uid, gid);
}

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
  if ('unref' in guard.stdin && typeof guard.stdin.unref === 'function')
    guard.stdin.unref();
  guard.stdin.on('error', () => {});
  return guard;
}

async function initialise(
  binaries: Binaries,
  folder: string,
  runAs: ServerUser,
  password: string,
): Promise<void> {
  const passwordFile = path.join(folder, 'password');
  writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
  own(passwordFile, runAs);
  await run(
    binaries.initdb,
    [
      `--pgdata=${path.join(folder, 'data')}`,
      `--username=${USER}`,
      `--pwfile=${passwordFile}`,
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      '--no-locale',
      '--no-sync',
      '--no-instructions',
    ],
    { ...runAs, cwd: folder, env: { ...process.env, LC_ALL: 'C' } },
  );
  await rm(passwordFile);
}

async function dispose(folder: string, guard: ChildProcess): Promise<void> {
  await rm(folder, { recursive: true, force: true, maxRetries: 20 });
  guard.stdin?.end();
  guard.ref();
  if (guard.exitCode === null && guard.signalCode === null)
    await once(guard, 'exit');
}
