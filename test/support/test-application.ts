import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { present } from './present.js';
import { type ProcessUsage, processUsage } from './process-usage.js';
import { waitFor, type WaitOptions } from './wait-for.js';

/** How a process ended. */
export interface ProcessEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A Nest application of `test/apps` in a process of its own, which a test may kill. It does not outlive the test. */
export class TestApplication {
  readonly #said: string[] = [];
  #output = '';
  #end: ProcessEnd | null = null;

  private constructor(private readonly child: ChildProcess) {
    child.on('message', (word) => {
      if (typeof word === 'string') this.#said.push(word);
    });
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8');
      stream?.on('data', (text: string) => (this.#output += text));
    }
    child.once('exit', (code, signal) => (this.#end = { code, signal }));
  }

  /** Starts `test/apps/<name>.ts`. */
  static start(
    name: string,
    env: Readonly<Record<string, string>>,
  ): TestApplication {
    return TestApplication.#spawn(`test/apps/${name}.js`, env);
  }

  /** Starts `sample/<name>/application/main.ts`. */
  static startSample(
    name: string,
    env: Readonly<Record<string, string>>,
  ): TestApplication {
    return TestApplication.#spawn(`sample/${name}/application/main.js`, env);
  }

  static #spawn(
    file: string,
    env: Readonly<Record<string, string>>,
  ): TestApplication {
    const entry = fileURLToPath(
      new URL(`../../.build/apps/${file}`, import.meta.url),
    );
    const application = new TestApplication(
      spawn(process.execPath, [entry], {
        env: { ...process.env, NODE_OPTIONS: '', NO_COLOR: '1', ...env },
        stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      }),
    );
    onTestFinished(() => application.kill());
    return application;
  }

  /** What it has said so far, in order. */
  get said(): readonly string[] {
    return this.#said;
  }

  /** What it wrote to stdout and stderr. */
  get output(): string {
    return this.#output;
  }

  /** Waits until it says a word. */
  async says(word: string, options: WaitOptions = {}): Promise<void> {
    await waitFor(
      () => {
        if (this.#said.includes(word)) return true;
        this.refuseEnd();
        return false;
      },
      {
        message: `the application to say ${word}`,
        timeout: 20_000,
        ...options,
      },
    );
  }

  /** What it has used so far; only while it runs. */
  usage(): ProcessUsage {
    return processUsage(present(this.child.pid));
  }

  /** @throws when its pipeline has halted, and when the process has ended */
  refuseEnd(): void {
    if (this.#said.includes('halted'))
      throw new Error(`The pipeline halted:\n${this.#output}`);
    if (this.#end !== null)
      throw new Error(`The application ended:\n${this.#output}`);
  }

  /** Waits until its output contains a text. */
  async writes(text: string, options: WaitOptions = {}): Promise<void> {
    await waitFor(() => this.#output.includes(text), {
      message: `the application to write ${text}`,
      ...options,
    });
  }

  /** Waits until the process has ended. */
  ended(options: WaitOptions = {}): Promise<ProcessEnd> {
    return waitFor(() => this.#end, {
      message: 'the application to end',
      ...options,
    });
  }

  /** Tells the application to close itself. */
  close(): void {
    this.child.send('close');
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** SIGKILL: it ends wherever it is. */
  async kill(): Promise<void> {
    this.signal('SIGKILL');
    await this.ended();
  }
}
