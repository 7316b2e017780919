import { execFile, spawn } from 'node:child_process';
import { chmod, mkdtemp, readdir, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { childrenOf } from '../bench/process-usage.js';
import { UsageError } from '../support/command-line.js';
import { present } from '../support/present.js';
import { useServer } from '../support/suite.js';
import { waitFor } from '../support/wait-for.js';
import { readOptions } from './crash-options.js';
import { CREATE_COPIES, examineCopies } from './examine-copies.js';
import { CREATE_LEDGER, examine, repeatedIn } from './examine.js';
import { LOAD_TABLES } from './load.js';
import { type Mode, MODE_NAMES, MODES } from './modes.js';
import { planKills } from './plan.js';
import { complaints, type ModeReport } from './report.js';
import { playable } from './servers.js';

const PROJECT = path.join(import.meta.dirname, '..', '..');
const MAIN = path.join(PROJECT, '.build/crash/test/crash/main.js');

const run = promisify(execFile);

const GOOD: ModeReport = {
  kills: 40,
  lost: 0,
  appliedTwice: 0,
  redelivered: 40,
  maxDuplicatesPerCrash: 0,
  transactions: 1_000,
  differences: 0,
  repeatedAfterStop: 0,
  points: Object.fromEntries(
    Object.values(MODES).flatMap(({ points }) => points.map((one) => [one, 5])),
  ),
  failed: 0,
  orphans: 0,
  filesLeft: 0,
  killsWithFiles: 40,
  killsInCopies: 40,
  copies: 2,
  chunks: 500,
  copiedTwice: 0,
  chunksAgain: 40,
  maxChunksPerCrash: 0,
  begunAgain: 0,
  seconds: 60,
};

describe('the kills of a run', () => {
  it('depend on the seed alone', () => {
    const { points } = MODES.messages;
    expect(planKills(7, points, 60)).toEqual(planKills(7, points, 60));
    expect(planKills(7, points, 60)).not.toEqual(planKills(8, points, 60));
    expect(planKills(7, points, 60).slice(0, 40)).toEqual(
      planKills(7, points, 40),
    );
  });

  it.each(MODE_NAMES)(
    'meet every point of %s and a random moment however few they are, and more than once when they are many',
    (name) => {
      const { points }: Mode = MODES[name];
      for (const seed of [0, 1, 2, 3]) {
        const few = planKills(seed, points, 3).map(({ place }) => place);
        expect(few.toSorted()).toEqual(
          [...points, 'at a random moment'].toSorted(),
        );
        const many = planKills(seed, points, 40).map(({ place }) => place);
        expect(many).toHaveLength(40);
        for (const point of points)
          expect(
            many.filter((place) => place === point).length,
          ).toBeGreaterThan(2);
      }
    },
  );
});

describe('the report', () => {
  it.each(MODE_NAMES)(
    'complains of nothing when %s keeps its promise',
    (name) => {
      const { mayRepeat, mayCopyAgain }: Mode = MODES[name];
      const good = {
        ...GOOD,
        maxDuplicatesPerCrash: mayRepeat,
        maxChunksPerCrash: mayCopyAgain,
      };
      expect(complaints(name, good)).toEqual([]);
    },
  );

  it.each([
    'lost',
    'differences',
    'repeatedAfterStop',
    'begunAgain',
    'filesLeft',
    'failed',
    'orphans',
  ])('complains of %s in every mode', (figure) => {
    for (const name of MODE_NAMES)
      expect(complaints(name, { ...GOOD, [figure]: 2 })).toEqual([
        `${figure} is 2`,
      ]);
  });

  it('complains of what comes again more often than the mode may repeat it', () => {
    const more = { ...GOOD, appliedTwice: 2, maxDuplicatesPerCrash: 2 };
    expect(complaints('batch', more)).toHaveLength(2);
    expect(complaints('lib', more)).toHaveLength(1);
    expect(complaints('lib-batch', more)).toEqual([]);
    const { mayRepeat } = MODES['lib-batch'];
    expect(
      complaints('lib-batch', {
        ...more,
        maxDuplicatesPerCrash: mayRepeat + 1,
      }),
    ).toHaveLength(1);
  });

  it('complains of rows that were copied twice, and of kills that met no copy', () => {
    const twice = { ...GOOD, copiedTwice: 1, maxChunksPerCrash: 1 };
    expect(complaints('incremental', twice)).toHaveLength(2);
    expect(complaints('initial', twice)).toHaveLength(2);
    expect(complaints('incremental-lib', twice)).toEqual([]);
    expect(
      complaints('incremental-lib', { ...twice, maxChunksPerCrash: 3 }),
    ).toHaveLength(1);
    expect(
      complaints('incremental-lib', { ...GOOD, chunksAgain: 9 }),
    ).toHaveLength(1);
    for (const name of MODE_NAMES)
      expect(complaints(name, { ...GOOD, killsInCopies: 9 })).toHaveLength(
        MODES[name].snapshot === null ? 0 : 1,
      );
  });

  it('complains of kills that met no file where there has to be one', () => {
    const without = { ...GOOD, killsWithFiles: 9 };
    for (const name of MODE_NAMES)
      expect(complaints(name, without)).toHaveLength(
        MODES[name].streaming === 'on disk' ? 1 : 0,
      );
  });

  it('complains of a point at which nothing was killed, and of one at which nothing came again', () => {
    const { idle: _, ...points } = GOOD.points;
    expect(complaints('transaction', { ...GOOD, points })).toEqual([
      'nothing was killed idle',
    ]);
    expect(complaints('lib', { ...GOOD, redelivered: 9 })).toHaveLength(1);
    expect(complaints('batch', { ...GOOD, redelivered: 0 })).toEqual([]);
  });
});

describe('the examination', () => {
  const suite = useServer();

  /** The source has sent 1 to 5, told of 2, and called at 3 and 4. */
  async function examined(ledger: string, messages: boolean) {
    const source = await suite.database();
    const target = await suite.database('target');
    await source.query(
      `${LOAD_TABLES.source}; create publication p for all tables;
       insert into journal select g, g = 2, g in (3, 4) from generate_series(1, 5) g`,
    );
    await target.query(`${LOAD_TABLES.target}; ${CREATE_LEDGER};
      insert into journal select g, g = 2, g in (3, 4) from generate_series(1, 5) g;
      ${ledger}`);
    const { transactions, ...found } = await examine(source, target, {
      messages,
      snapshot: null,
    });
    expect(transactions).toBe(5);
    return { ...found, repeatedIn3: await repeatedIn(target, 3) };
  }

  it('tells what was lost, and what was applied twice', async () => {
    const ledger = `
      insert into ledger(run, outcome, lsn, id) values (1, 'applied', '0/1', 1), (1, 'applied', '0/2', 2), (1, 'heard', '0/3', 3),
        (1, 'applied', '0/4', 4), (2, 'applied', '0/4', 4), (2, 'applied', '0/5', 5), (3, 'skipped', '0/5', null),
        (3, 'heard', '0/3', 3), (3, 'applied', '0/4', 4), (3, 'applied', '0/5', 5);
      insert into told values (9)`;
    const again = {
      appliedTwice: 2,
      redelivered: 5,
      maxDuplicatesPerCrash: 3,
      repeatedIn3: 3,
    };
    // Transaction 3, the telling of 2 and the call of 4; nobody has told of 9.
    expect(await examined(ledger, true)).toEqual({
      ...again,
      lost: 3,
      differences: 1,
    });
    expect(await examined(ledger, false)).toEqual({
      ...again,
      lost: 1,
      differences: 1,
    });
  });

  it('tells rows that the mirror lacks', async () => {
    const ledger = `
      insert into ledger(run, outcome, lsn, id) select 1, 'applied', ('0/' || g)::pg_lsn, g from generate_series(1, 5) g;
      delete from journal where id = 1`;
    expect(await examined(ledger, false)).toEqual({
      lost: 0,
      appliedTwice: 0,
      redelivered: 0,
      maxDuplicatesPerCrash: 0,
      differences: 1,
      repeatedIn3: 0,
    });
  });
});

describe('the examination of copies', () => {
  const suite = useServer();

  it('tells rows that came twice by one copy, and tables that were begun again', async () => {
    const target = await suite.database('target');
    await target.query(`${CREATE_COPIES};
      insert into cleared(run, relation) select 1, 'a' from generate_series(1, 3);
      insert into completed values (1);
      insert into copied(run, relation, copy, keys) values (1, 'a', 1, '{1,2}'), (1, 'b', 1, '{1}'), (2, 'a', 1, '{2,3}'),
        (2, 'a', 1, '{2,1}'), (3, 'a', 2, '{1}')`);
    // Another row has the key by now.
    await target.query(
      `insert into copied(run, relation, copy, keys) values (3, 'c', 1, '{1,2}')`,
    );
    await target.query(`insert into vacated(relation, key) values ('c', '1')`);
    await target.query(
      `insert into copied(run, relation, copy, keys) values (4, 'c', 1, '{1}')`,
    );
    const found = {
      chunks: 7,
      copiedTwice: 2,
      chunksAgain: 2,
      maxChunksPerCrash: 2,
    };
    expect(await examineCopies(target, MODES.incremental)).toEqual({
      ...found,
      begunAgain: 1,
    });
    expect(await examineCopies(target, MODES['incremental-lib'])).toEqual({
      ...found,
      begunAgain: 0,
    });
  });

  it('tells a transaction that was copied and came behind the copy as well, and one that did neither', async () => {
    const source = await suite.database();
    const target = await suite.database('target');
    const rows = `insert into journal select g, false, false from generate_series(1, 3) g`;
    await source.query(
      `${LOAD_TABLES.source}; create publication p for all tables; ${rows}`,
    );
    await target.query(`${LOAD_TABLES.target}; ${CREATE_LEDGER}; ${rows};
      insert into cleared(run, relation) values (1, 'public.journal');
      insert into copied(run, relation, copy, keys) values (1, 'public.journal', 1, '{"[\\"1\\"]"}');
      insert into ledger(run, outcome, lsn, id) values (1, 'applied', '0/1', 1)`);
    expect(await examine(source, target, MODES.initial)).toMatchObject({
      lost: 2,
      appliedTwice: 1,
      differences: 0,
    });
  });
});

describe('the modes of a run', () => {
  const fail = async () => 'no mmdebstrap';

  it('are all, where there is a server for each', async () => {
    expect(await playable(null, refuse, async () => null)).toEqual(MODE_NAMES);
  });

  it('leave out those that there is no server for, and say so', async () => {
    const told: string[] = [];
    const modes = await playable(null, (line) => told.push(line), fail);
    expect(MODE_NAMES.filter((mode) => !modes.includes(mode))).toEqual([
      'wal2json',
      'pglogical',
    ]);
    expect(told).toEqual([
      expect.stringContaining('wal2json, pglogical, as no'),
    ]);
  });

  it('are refused when one that was asked for has no server', async () => {
    await expect(playable(['lib', 'pglogical'], refuse, fail)).rejects.toThrow(
      'Cannot be played: pglogical, as no server',
    );
    expect(await playable(['lib'], refuse, fail)).toEqual(['lib']);
  });

  function refuse(line: string): void {
    throw new Error(`It told: ${line}`);
  }
});

describe('the command line', () => {
  it('has forty kills in all modes and a new seed each time', () => {
    expect(readOptions([])).toMatchObject({
      kills: 40,
      modes: null,
      plant: null,
      json: false,
    });
    expect(readOptions([]).seed).not.toBe(readOptions([]).seed);
    expect(
      readOptions([
        '--json',
        '--kills=3',
        '--modes=lib,batch',
        '--seed=9',
        '--plant=early-ack',
      ]),
    ).toEqual({
      kills: 3,
      modes: ['lib', 'batch'],
      seed: 9,
      plant: 'early-ack',
      json: true,
    });
  });

  it.each(['--kills=0', '--seed=-1', '--modes=', '--plant=all', '--never'])(
    'refuses %s',
    (argument) => {
      expect(() => readOptions([argument])).toThrow(UsageError);
    },
  );
});

describe('the program', () => {
  beforeAll(async () => {
    await run(process.execPath, [
      path.join(PROJECT, 'node_modules/typescript/bin/tsc'),
      '-p',
      path.join(PROJECT, 'test/tsconfig.crash.json'),
    ]);
  }, 120_000);

  it('ends with a line of JSON, and well when nothing is wrong', async () => {
    const { code, last } = await crash('--modes=transaction');
    expect(last).toMatchObject({
      modes: {
        transaction: {
          kills: MODES.transaction.points.length + 1,
          lost: 0,
          appliedTwice: 0,
        },
      },
    });
    expect(code).toBe(0);
  }, 120_000);

  it.each([
    ['early-ack', 'lost'],
    ['late-advance', 'appliedTwice'],
  ])(
    'fails with the fault %s planted',
    async (plant, figure) => {
      const { code, last } = await crash(
        '--modes=transaction',
        `--plant=${plant}`,
      );
      expect(last).not.toMatchObject({
        modes: { transaction: { [figure]: 0 } },
      });
      expect(last).toMatchObject({ modes: { transaction: { failed: 0 } } });
      expect(code).toBe(1);
    },
    120_000,
  );

  it('leaves nothing behind when it is interrupted', async () => {
    const folder = await mkdtemp(
      path.join(await realpath(tmpdir()), 'replicant-crash-'),
    );
    onTestFinished(() => rm(folder, { recursive: true }));
    // A server that root starts runs as another user, who must be able to enter.
    await chmod(folder, 0o755);
    const program = spawn(process.execPath, [MAIN, '--modes=transaction'], {
      env: { ...process.env, TMPDIR: folder },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void program.kill('SIGKILL'));
    let output = '';
    program.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    await waitFor(() => output.includes('killed'), {
      message: 'the first kill',
      timeout: 60_000,
    });
    const children = childrenOf(present(program.pid));
    program.kill('SIGINT');
    await waitFor(() => program.exitCode === 130, {
      message: 'the program to end',
    });
    await waitFor(async () => (await readdir(folder)).length === 0, {
      message: 'the data of the server to go',
    });
    await waitFor(() => [...(children ?? [])].every(hasEnded), {
      message: 'the children to end',
    });
  }, 120_000);
});

/** Runs the suite with as few kills as it has, and gives its exit code and its last line. */
async function crash(
  ...options: readonly string[]
): Promise<{ readonly code: number; readonly last: unknown }> {
  const program = spawn(
    process.execPath,
    [MAIN, '--json', '--kills=1', '--seed=1', ...options],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  onTestFinished(() => void program.kill('SIGKILL'));
  let output = '';
  program.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const code = await waitFor(() => program.exitCode, {
    message: 'the program to end',
    timeout: 100_000,
  });
  return { code, last: JSON.parse(output.trimEnd().split('\n').at(-1) ?? '') };
}

function hasEnded(pid: string): boolean {
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch {
    return true;
  }
}
