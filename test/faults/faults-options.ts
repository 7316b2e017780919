import { parseArgs } from 'node:util';
import { parsed, seedFrom, wholeNumber } from '../support/command-line.js';

export const USAGE = `npm run faults -- [options]

  --rounds <n>  rounds; six meet every family of faults (60)
  --seed <n>    repeats the faults of the run that printed it (random)
  --json        print nothing but one line of JSON to stdout, and the rest to stderr`;

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
    seed: seedFrom(seed),
    json,
  };
}

function parse(args: readonly string[]) {
  return parsed(
    () =>
      parseArgs({
        args: [...args],
        options: {
          rounds: { type: 'string', default: '60' },
          seed: { type: 'string' },
          json: { type: 'boolean', default: false },
        },
      }).values,
  );
}
