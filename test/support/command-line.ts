import { randomInt } from 'node:crypto';

const USAGE_EXIT_CODE = 2;
const INTERRUPTED_EXIT_CODE = 130;
const SEEDS = 2 ** 32;

/** What was asked for cannot be run. */
export class UsageError extends Error {}

/** Gives the exit code of a program: its own, or that of a command line that it refused, after telling why. */
export async function exitCodeOf(
  usage: string,
  program: () => Promise<number>,
): Promise<number> {
  try {
    return await program();
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    console.error(`${error.message}\n\n${usage}`);
    return USAGE_EXIT_CODE;
  }
}

/** Ends this process when it is interrupted. Its servers and applications notice by themselves that it has ended. */
export function endWhenInterrupted(cleanUp: () => void = () => {}): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => {
      cleanUp();
      process.exit(INTERRUPTED_EXIT_CODE);
    });
}

/**
 * What `parse` makes of the command line.
 *
 * @throws {UsageError} in place of any other error
 */
export function parsed<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : '');
  }
}

/** @throws {UsageError} */
export function wholeNumber(name: string, text: string, least: number): number {
  const number = text.trim() === '' ? Number.NaN : Number(text);
  if (!Number.isInteger(number) || number < least || number >= SEEDS)
    throw new UsageError(`${name} takes a whole number from ${least}.`);
  return number;
}

/**
 * The seed that was given, or else a new one.
 *
 * @throws {UsageError}
 */
export function seedFrom(text: string | undefined): number {
  return text === undefined ? randomInt(SEEDS) : wholeNumber('--seed', text, 0);
}

/**
 * The names in a list with commas; all that are known when there is no list.
 *
 * @throws {UsageError} when one is unknown
 */
export function namesFrom<K extends string>(
  option: string,
  list: string | undefined,
  known: readonly K[],
): readonly K[] {
  if (list === undefined) return known;
  return list.split(',').map((text) => {
    const name = known.find((one) => one === text);
    if (name === undefined)
      throw new UsageError(`${option} takes ${known.join(', ')}.`);
    return name;
  });
}
