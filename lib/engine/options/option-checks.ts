import { isName } from '../model/names.js';
import { ReplicantConfigError } from './config-error.js';

/** An object of settings. */
export function nested<T extends object>(option: string, value: T): T {
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value;
  throw new ReplicantConfigError(option, 'must be an object.');
}

/** The name of a table without its schema. A dot in it would be meant for a schema. */
export function tableName(
  option: string,
  value: unknown,
  fallback: string,
): string {
  if (value === undefined) return fallback;
  if (typeof value === 'string' && isName(value) && !value.includes('.'))
    return value;
  throw new ReplicantConfigError(
    option,
    'must be the name of a table without its schema, of 1 to 63 bytes and without a dot; the search path of the connection decides where it is.',
  );
}

/** One of a few words, the first of which is the default. */
export function oneOf<W extends string>(
  option: string,
  value: W | undefined,
  words: readonly [W, ...W[]],
): W {
  if (value === undefined) return words[0];
  if (words.includes(value)) return value;
  throw new ReplicantConfigError(
    option,
    `must be ${words.map((word) => `'${word}'`).join(' or ')}.`,
  );
}

export function flag(
  option: string,
  value: unknown,
  fallback: boolean,
): boolean {
  if (value === undefined) return fallback;
  if (typeof value === 'boolean') return value;
  throw new ReplicantConfigError(option, 'must be true or false.');
}

export function count(
  option: string,
  value: unknown,
  fallback: number,
): number {
  if (value === undefined) return fallback;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0)
    return value;
  throw new ReplicantConfigError(option, 'must be 0 or a positive integer.');
}

export function positiveInteger(
  option: string,
  value: unknown,
  fallback: number,
): number {
  if (value === undefined) return fallback;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value > 0)
    return value;
  throw new ReplicantConfigError(option, 'must be a positive integer.');
}

/** A timer of Node that is set for longer fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export function milliseconds(
  option: string,
  value: unknown,
  fallback: number,
): number {
  const time = positiveInteger(option, value, fallback);
  if (time <= LONGEST_TIMER_MS) return time;
  throw new ReplicantConfigError(
    option,
    'must be at most 2147483647 milliseconds, 24 days.',
  );
}

/** A limit that `false` switches off; `null` then. */
export function limit(
  option: string,
  value: unknown,
  fallback: number,
): number | null {
  if (value === false) return null;
  if (value === undefined) return fallback;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value > 0)
    return value;
  throw new ReplicantConfigError(
    option,
    'must be a positive integer or false.',
  );
}

/** A part of a whole that `false` switches off; `null` then. */
export function fraction(
  option: string,
  value: unknown,
  fallback: number,
): number | null {
  if (value === false) return null;
  if (value === undefined) return fallback;
  if (typeof value === 'number' && value > 0 && value < 1) return value;
  throw new ReplicantConfigError(
    option,
    'must be a number between 0 and 1, or false.',
  );
}

/**
 * Refuses a name that is not known. It is the user's own text, so only what looks like a name is repeated.
 *
 * @param elsewhere - names that are known in another place, with what to do: they would else look misspelt
 */
export function refuseUnknown(
  options: object,
  known: ReadonlySet<string>,
  prefix = '',
  elsewhere: ReadonlyMap<string, string> = new Map(),
): void {
  for (const name of Object.keys(options)) {
    if (known.has(name)) continue;
    throw new ReplicantConfigError(
      prefix + printable(name),
      elsewhere.get(name) ?? 'is not known; correct its name.',
    );
  }
}

function printable(name: string): string {
  return /^[A-Za-z][A-Za-z0-9]{0,40}$/.test(name) ? name : '(unnamed)';
}
