import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Load } from './loads.js';
import { type Cores, onClientCore } from './cores.js';
import type { Source } from './source.js';

/** Names of variables to values, as a program in `programs` reads them. */
export type ChildSettings = Readonly<Record<string, string>>;

/** Path of a program in `programs`, by its file name. */
export function programPath(script: string): string {
  return fileURLToPath(new URL(`programs/${script}`, import.meta.url));
}

/** What every reading program has to know. */
export function sourceSettings(
  source: Pick<Source, 'database'>,
  load: Pick<Load, 'transport'>,
  slot: string,
  certificate: string,
): ChildSettings {
  return {
    SOURCE_URL: source.database.url,
    CERTIFICATE: load.transport === 'TLS' ? certificate : '',
    SLOT: slot,
  };
}

/** A Node.js process on the client's core that sends messages and ends when it has sent the last. */
export class NodeChild {
  readonly #child;
  readonly #messages: unknown[] = [];
  readonly #ended: Promise<unknown[]>;

  constructor(script: string, settings: ChildSettings, cores: Cores | null) {
    const { program, args } = onClientCore(cores, process.execPath, [script]);
    // The channel tells the child when this process dies.
    this.#child = spawn(program, args, {
      env: { ...process.env, ...settings },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    this.#child.on('message', (message: unknown) => {
      this.#messages.push(message);
    });
    this.#ended = once(this.#child, 'exit');
  }

  /** Waits for the first message. */
  async started(): Promise<void> {
    if (this.#messages.length > 0) return;
    await Promise.race([once(this.#child, 'message'), this.#ended]);
    if (this.#messages.length === 0)
      throw new Error('A reader has ended before it began.');
  }

  /** Waits for the end, and gives the last message. */
  async result(): Promise<unknown> {
    const [code] = await this.#ended;
    if (code !== 0 || this.#messages.length === 0)
      throw new Error(`A reader has ended with ${String(code)}.`);
    return this.#messages.at(-1);
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }
}

/** The numbers in a message; throws when one is missing. `null` passes. */
export function numbersIn<K extends string>(
  message: unknown,
  names: readonly K[],
): Record<K, number | null>;
export function numbersIn(
  message: unknown,
  names: readonly string[],
): Record<string, number | null> {
  const numbers: Record<string, number | null> = {};
  for (const name of names) {
    const value: unknown =
      typeof message === 'object' && message !== null
        ? Reflect.get(message, name)
        : undefined;
    if (typeof value !== 'number' && value !== null)
      throw new Error(`A reader has not told its ${name}.`);
    numbers[name] = value;
  }
  return numbers;
}
