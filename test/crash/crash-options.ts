import { parseArgs } from 'node:util';
import {
  namesFrom,
  parsed,
  seedFrom,
  wholeNumber,
} from '../support/command-line.js';
import { MODE_NAMES, type ModeName, type Plant, PLANTS } from './modes.js';

export const USAGE = `npm run crash -- [options]

  --kills <n>     kills in each mode, or one at each of its points if that is more (40)
  --modes <m,…>   modes of delivery: ${MODE_NAMES.join(', ')} (all; those of other plugins where their server can be made)
  --seed <n>      repeats the kills of the run that printed it (random)
  --plant <p>     a fault in the sink, which must make the run fail:
                  early-ack: its promises resolve before the work is done
                  late-advance: it stores its checkpoint, and how far a copy is, after the transaction of the rows (modes with one of the sink)
  --json          print nothing but one line of JSON to stdout, and the rest to stderr`;

/** What to run. */
export interface CrashOptions {
  readonly kills: number;
  /** `null` is all that can be played here. */
  readonly modes: readonly ModeName[] | null;
  readonly seed: number;
  readonly plant: Plant | null;
  readonly json: boolean;
}

/**
 * Reads the command line.
 *
 * @throws {UsageError}
 */
export function readOptions(args: readonly string[]): CrashOptions {
  const { kills, modes, seed, plant, json } = parse(args);
  return {
    kills: wholeNumber('--kills', kills, 1),
    modes: modes === undefined ? null : namesFrom('--modes', modes, MODE_NAMES),
    seed: seedFrom(seed),
    plant:
      plant === undefined
        ? null
        : (namesFrom('--plant', plant, PLANTS)[0] ?? null),
    json,
  };
}

function parse(args: readonly string[]) {
  return parsed(
    () =>
      parseArgs({
        args: [...args],
        options: {
          kills: { type: 'string', default: '40' },
          modes: { type: 'string' },
          seed: { type: 'string' },
          plant: { type: 'string' },
          json: { type: 'boolean', default: false },
        },
      }).values,
  );
}
