import { randomInt } from 'node:crypto';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { present } from './support/present.js';
import { Lane } from './support/scheduled/lane.js';
import { SETTINGS, type Setting } from './support/scheduled/settings.js';
import { useServer } from './support/suite.js';

/**
 * Schedules are numbered by their seeds, and played by as many lanes as there are settings: seed n by lane n modulo that. A lane
 * has a source of its own and a pipeline that lives over all of its schedules.
 *
 * STREAMED_SEED=n plays that schedule alone, and with STREAMED_SCHEDULES=m the m of its lane from there; without a seed, m is how
 * many all lanes play together.
 */
const SEED = numberOf('STREAMED_SEED');
const SCHEDULES = numberOf('STREAMED_SCHEDULES');
const LANES = SETTINGS.length;
const LEAST_SCHEDULES = 300;
const SCHEDULE_MS = 10_000;

const suite = useServer({
  settings: {
    // The server streams what has reached this while it runs.
    logical_decoding_work_mem: '64kB',
    max_connections: 200,
  },
});

function numberOf(variable: string): number | null {
  const text = process.env[variable];
  return text === undefined ? null : Number(text);
}

/** Plays schedules of one lane. Gives how many transactions the server has streamed. */
async function play(first: number, count: number): Promise<number> {
  const setting = present(SETTINGS[first % LANES]);
  const dir = await mkdtemp(join(tmpdir(), 'spill-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  const source = await suite.database();
  const target = await suite.database('target');
  const lane = await Lane.open({ source, target }, setting, dir);
  onTestFinished(() => lane.close());
  for (let number = 0; number < count; number++)
    await playOne(lane, setting, first + number * LANES, first, number);
  await lane.close();
  const files = await readdir(dir, { recursive: true });
  expect(files).toEqual([]);
  const [streamed] = await source.query<{ count: number }>(
    `select stream_txns::int as count from pg_stat_replication_slots where slot_name = 'slot_' || current_database()`,
  );
  return streamed?.count ?? 0;
}

async function playOne(
  lane: Lane,
  { held, mode, types }: Setting,
  seed: number,
  first: number,
  before: number,
): Promise<void> {
  try {
    await lane.play(seed);
  } catch (error) {
    throw new Error(
      `Schedule ${seed} failed (held: ${held}; mode: ${mode}; types: ${types}). STREAMED_SEED=${seed} plays it alone, STREAMED_SEED=${first} STREAMED_SCHEDULES=${before + 1} with those before it. ${String(error)}`,
      { cause: error },
    );
  }
}

/** All at once. What one of them fails with comes when the others are done. */
async function together<T>(work: readonly Promise<T>[]): Promise<T[]> {
  const ends = await Promise.allSettled(work);
  return ends.map((end) => {
    if (end.status === 'rejected') throw end.reason;
    return end.value;
  });
}

/** Lanes that play beside each other, by their first seeds. */
interface Round {
  readonly name: string;
  readonly seeds: readonly number[];
  /** Schedules of each lane. */
  readonly count: number;
}

function roundOf(seed: number, count: number): Round {
  return { name: `${count} from seed ${seed}`, seeds: [seed], count };
}

/** All lanes, those together that hold transactions in the same way. */
function allRounds(schedules: number): Round[] {
  const first = randomInt(100_000_000) * LANES;
  const count = Math.ceil(schedules / LANES);
  const groups = new Map<string, number[]>();
  for (const [lane, { held }] of SETTINGS.entries())
    groups.set(held, [...(groups.get(held) ?? []), first + lane]);
  return [...groups].map(([held, seeds]) => ({
    name: `held ${held}, from seed ${first}`,
    seeds,
    count,
  }));
}

describe('schedules of transactions that run beside each other', () => {
  it.each(
    SEED === null
      ? allRounds(SCHEDULES ?? LEAST_SCHEDULES)
      : [roundOf(SEED, SCHEDULES ?? 1)],
  )(
    'are delivered as they were committed: $name',
    async ({ seeds, count }) => {
      const streamed = await together(seeds.map((seed) => play(seed, count)));
      // Those of a single schedule need not be large.
      if (SEED === null)
        for (const transactions of streamed)
          expect(transactions).toBeGreaterThan(count);
    },
    60_000 + ((SCHEDULES ?? LEAST_SCHEDULES) / LANES) * SCHEDULE_MS,
  );
});
