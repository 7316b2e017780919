import { setTimeout as sleep } from 'node:timers/promises';

/** How long and for what {@link waitFor} waits. */
export interface WaitOptions {
  /** Milliseconds. @default 10000 */
  readonly timeout?: number;
  /** Says what did not happen. */
  readonly message?: string;
}

const POLL_MS = 15;

/**
 * Asks until the condition holds, and returns what it gave. `false`, `null` and `undefined` mean not yet; an error of
 * the condition ends the wait.
 */
export async function waitFor<T>(
  condition: () =>
    Promise<T | false | null | undefined> | T | false | null | undefined,
  { timeout = 10_000, message = 'the condition' }: WaitOptions = {},
): Promise<T> {
  const end = performance.now() + timeout;
  for (;;) {
    const value = await condition();
    if (value !== false && value !== null && value !== undefined) return value;
    if (performance.now() >= end) {
      throw new Error(`Waited ${timeout} ms in vain for ${message}.`);
    }
    await sleep(POLL_MS);
  }
}

/** A promise with its two ends. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: Error) => void;
}

export function deferred<T = void>(): Deferred<T> {
  let resolve: Deferred<T>['resolve'] = unset;
  let reject: Deferred<T>['reject'] = unset;
  const promise = new Promise<T>((fulfil, refuse) => {
    resolve = fulfil;
    reject = refuse;
  });
  return { promise, resolve, reject };
}

/** The constructor of a promise replaces it before it returns. */
function unset(): never {
  throw new Error('The promise has no ends yet.');
}
