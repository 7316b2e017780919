import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';

export const USAGE = `npm run faults -- [options]

  --rounds <n>  rounds; six meet every family of faults (60)
  --seed <n>    repeats the faults of the run that printed it (random)
  --json        print nothing but one line of JSON to stdout, and the rest to stderr`;

const SEEDS = 2 ** 32;

/** What was asked for cannot be run. */
export class UsageError extends Error {}

/** What to run. */
export interface FaultsOptions {
  readonly rounds: number;
  readonly seed: number;
  readonly json: boolean;
}

/**
 * Reads the command line.
 *
 * @throws {UsageError}
 */
export function readOptions(args: readonly string[]): FaultsOptions {
  const { rounds, seed, json } = parse(args);
  return {
    rounds: wholeNumber('--rounds', rounds, 1),
    seed:
      seed === undefined ? randomInt(SEEDS) : wholeNumber('--seed', seed, 0),
    json,
  };
}

function wholeNumber(name: string, text: string, least: number): number {
  const number = text.trim() === '' ? Number.NaN : Number(text);
  if (!Number.isInteger(number) || number < least || number >= SEEDS)
    throw new UsageError(`${name} takes a whole number from ${least}.`);
  return number;
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        rounds: { type: 'string', default: '60' },
        seed: { type: 'string' },
        json: { type: 'boolean', default: false },
      },
    }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : '');
  }
}
