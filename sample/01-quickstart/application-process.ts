import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../test/support/free-port.js';
import { waitFor } from '../../test/support/wait-for.js';

const ENTRY = fileURLToPath(new URL('application/main.js', import.meta.url));
const READY_TIMEOUT_MS = 60_000;
const PROBE_INTERVAL_MS = 100;

/** The Nest application in a process of its own, so that it can be killed. */
export class ApplicationProcess {
  #child: ChildProcess | null = null;

  private constructor(
    private readonly sourceUrl: string,
    private readonly targetUrl: string,
    private readonly port: number,
  ) {}

  static async create({
    sourceUrl,
    targetUrl,
  }: {
    readonly sourceUrl: string;
    readonly targetUrl: string;
  }): Promise<ApplicationProcess> {
    return new ApplicationProcess(sourceUrl, targetUrl, await freePort());
  }

  /** Where it serves HTTP. */
  get address(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get running(): boolean {
    return this.#child !== null;
  }

  start(): void {
    const child = spawn(process.execPath, [ENTRY], {
      env: {
        ...process.env,
        SOURCE_URL: this.sourceUrl,
        TARGET_URL: this.targetUrl,
        PORT: String(this.port),
      },
      // The Ctrl-C of a terminal is for this process, which then ends the application in its turn. The channel tells
      // the application when this process dies.
      detached: true,
      windowsHide: true,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    this.#child = child;
    child.once('exit', () => {
      if (this.#child === child) this.#child = null;
    });
  }

  /** Waits until the pipeline streams. */
  async ready(): Promise<void> {
    await waitFor(
      async () => {
        if (!this.running) throw new Error('The application ended.');
        await sleep(PROBE_INTERVAL_MS);
        const response = await fetch(`${this.address}/health/ready`).catch(
          () => null,
        );
        return response?.ok;
      },
      { timeout: READY_TIMEOUT_MS, message: 'the application to be ready' },
    );
  }

  /** SIGKILL: the process ends wherever it is. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** SIGTERM: the application drains. */
  async stop(): Promise<void> {
    await this.#end('SIGTERM');
  }

  async #end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const child = this.#child;
    if (child === null) return;
    const exit = once(child, 'exit');
    child.kill(signal);
    await exit;
  }
}
