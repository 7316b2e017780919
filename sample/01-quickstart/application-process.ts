import type { PipelineStatus } from 'nestjs-replicant';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../test/support/free-port.js';
import { waitFor } from '../../test/support/wait-for.js';
import type { Pair } from './environment.js';

const ENTRY = fileURLToPath(new URL('application/main.js', import.meta.url));
const READY_TIMEOUT_MS = 60_000;
const PROBE_INTERVAL_MS = 100;

/** How the application copies the rows that exist already. */
export type Mode = 'initial' | 'incremental';

/** The Nest application in a process of its own, so that it can be killed. */
export class ApplicationProcess {
  #child: ChildProcess | null = null;

  private constructor(
    private readonly pair: Pair,
    private readonly mode: Mode,
    private readonly port: number,
  ) {}

  static async create(
    pair: Pair,
    mode: Mode = 'initial',
  ): Promise<ApplicationProcess> {
    return new ApplicationProcess(pair, mode, await freePort());
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
        SOURCE_URL: this.pair.sourceUrl,
        TARGET_URL: this.pair.targetUrl,
        SLOT_NAME: this.pair.slotName,
        SNAPSHOT: this.mode,
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
        await sleep(PROBE_INTERVAL_MS);
        return (await this.status())?.state === 'streaming';
      },
      { timeout: READY_TIMEOUT_MS, message: 'the application to be ready' },
    );
  }

  /** What it says of its pipeline; `null` while it starts. */
  async status(): Promise<PipelineStatus | null> {
    if (!this.running) throw new Error('The application ended.');
    try {
      const response = await fetch(`${this.address}/status`);
      const answer: unknown = await response.json();
      return isStatus(answer) ? answer : null;
    } catch {
      return null;
    }
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

/** The application is of this project, so it is enough to tell a status from an error. */
function isStatus(answer: unknown): answer is PipelineStatus {
  return typeof answer === 'object' && answer !== null && 'snapshot' in answer;
}
