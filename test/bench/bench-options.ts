import { parseArgs } from 'node:util';
import { parsed, UsageError } from '../support/command-line.js';

const BENCHES = ['consume', 'decoders', 'delay', 'snapshot', 'large'] as const;

export const USAGE = `npm run bench -- consume|decoders|delay|snapshot|large [options]

  --only <load,…>     run these loads only
  --readers <name,…>  run these readers only
  --rounds <n>        runs of each reader on each load (not of delay; 5)
  --scale <factor>    of the size of the loads (1)`;

/** What to run. */
export interface BenchOptions {
  readonly bench: (typeof BENCHES)[number];
  /** Names of loads; `null` is all. */
  readonly only: readonly string[] | null;
  /** Names of readers; `null` is all. */
  readonly readers: readonly string[] | null;
  readonly rounds: number;
  readonly scale: number;
}

/**
 * Reads the command line.
 *
 * @throws {UsageError}
 */
export function readOptions(args: readonly string[]): BenchOptions {
  const { values, positionals } = parse(args);
  const bench = BENCHES.find((name) => name === positionals[0]);
  if (bench === undefined || positionals.length > 1)
    throw new UsageError(`Which bench? ${BENCHES.join(', ')}`);
  const rounds = Number(values.rounds);
  const scale = Number(values.scale);
  if (!Number.isInteger(rounds) || rounds < 1)
    throw new UsageError('--rounds takes a whole number from 1.');
  if (!(scale > 0)) throw new UsageError('--scale takes a number above 0.');
  return {
    bench,
    only: names(values.only),
    readers: names(values.readers),
    rounds,
    scale,
  };
}

/**
 * Those that were asked for.
 *
 * @throws {UsageError} when one is unknown
 */
export function choose<T extends { readonly name: string }>(
  all: readonly T[],
  wanted: readonly string[] | null,
): T[] {
  if (wanted === null) return [...all];
  for (const name of wanted) {
    if (!all.some((one) => one.name === name)) {
      const known = all.map((one) => one.name).join(', ');
      throw new UsageError(`There is no ${name}; there are: ${known}`);
    }
  }
  return all.filter(({ name }) => wanted.includes(name));
}

function parse(args: readonly string[]) {
  return parsed(() =>
    parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        only: { type: 'string' },
        readers: { type: 'string' },
        rounds: { type: 'string', default: '5' },
        scale: { type: 'string', default: '1' },
      },
    }),
  );
}

function names(list: string | undefined): string[] | null {
  return list === undefined ? null : list.split(',');
}
