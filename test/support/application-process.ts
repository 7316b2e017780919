import { type ChildProcess, spawn } from 'node:child_process';
import { present } from './present.js';
import { type ProcessUsage, processUsage } from './process-usage.js';
import { waitFor, type WaitOptions } from './wait-for.js';

/** How a process ended. */
export interface ProcessEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A Nest application in a process of its own, which may be killed. It says words, and is told words. */
export class ApplicationProcess {
  readonly #child: ChildProcess;
  readonly #said: string[] = [];
  #output = '';
  #end: ProcessEnd | null = null;

  /**
   * @param entry - the compiled program
   */
  constructor(entry: string, env: Readonly<Record<string, string>>) {
    const child = spawn(process.execPath, [entry], {
      env: { ...process.env, NODE_OPTIONS: '', NO_COLOR: '1', ...env },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    this.#child = child;
    child.on('message', (word) => {
      if (typeof word === 'string') this.#said.push(word);
    });
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8');
      stream?.on('data', (text: string) => (this.#output += text));
    }
    child.once('exit', (code, signal) => (this.#end = { code, signal }));
  }

  /** What it has said so far, in order. */
  get said(): readonly string[] {
    return this.#said;
  }

  /** What it wrote to stdout and stderr. */
  get output(): string {
    return this.#output;
  }

  get running(): boolean {
    return this.#end === null;
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
    return processUsage(present(this.#child.pid));
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

  /** Tells it a word; one that has ended does not hear it. */
  tell(word: string): void {
    this.#child.send(word, () => {});
  }

  /** Tells the application to close itself. */
  close(): void {
    this.tell('close');
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** SIGKILL: it ends wherever it is. */
  async kill(): Promise<void> {
    this.signal('SIGKILL');
    await this.ended();
  }
}
