import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { UsageError } from '../support/command-line.js';
import { readOptions } from './faults-options.js';
import { readFindings } from './findings.js';
import { FAMILIES, planRounds } from './plan.js';
import { complaints, type FaultsReport } from './report.js';

const GOOD: FaultsReport = {
  rounds: 6,
  missing: 0,
  extra: 0,
  different: 0,
  appliedTwice: 0,
  unhandled: 0,
  openHandles: 0,
  findings: [],
  failedRounds: 0,
  seed: 1,
  transactions: 1_000,
  applications: 3,
  reconnects: 9,
  faults: { kill: 1 },
  seconds: 30,
};

describe('the faults of a run', () => {
  it('depend on the seed alone', () => {
    expect(planRounds(7, 60)).toEqual(planRounds(7, 60));
    expect(planRounds(7, 60)).not.toEqual(planRounds(8, 60));
    expect(planRounds(7, 60).slice(0, 6)).toEqual(planRounds(7, 6));
  });

  it.each([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])(
    'are of every family in six rounds, and of every kind in sixty (seed %i)',
    (seed) => {
      const families = planRounds(seed, 6).map(([first]) => first?.family);
      expect(new Set(families)).toEqual(new Set(Object.keys(FAMILIES)));
      const kinds = new Set(
        planRounds(seed, 60)
          .flat()
          .map(({ kind }) => kind),
      );
      expect([...kinds].toSorted()).toEqual(
        Object.values(FAMILIES).flat().toSorted(),
      );
    },
  );
});

describe('the report', () => {
  it('complains of nothing when nothing is wrong, whatever was done', () => {
    expect(complaints(GOOD)).toEqual([]);
  });

  it.each([
    'missing',
    'extra',
    'different',
    'appliedTwice',
    'unhandled',
    'openHandles',
    'failedRounds',
  ])('complains of %s', (name) => {
    expect(complaints({ ...GOOD, [name]: 2 })).toEqual([`${name} is 2`]);
  });

  it('counts what applications have recorded, and nothing where none did', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'replicant-findings-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const file = path.join(folder, 'findings');
    expect(readFindings(file)).toMatchObject({ unhandled: 0, openHandles: 0 });
    await writeFile(
      file,
      'unhandled warning MaxListenersExceededWarning\nopen Timeout\nopen TCPSocketWrap\n',
    );
    expect(readFindings(file)).toMatchObject({ unhandled: 1, openHandles: 2 });
  });
});

describe('the command line', () => {
  it('has sixty rounds and a new seed each time', () => {
    expect(readOptions([])).toMatchObject({ rounds: 60, json: false });
    expect(readOptions([]).seed).not.toBe(readOptions([]).seed);
    expect(readOptions(['--json', '--rounds', '6', '--seed=9'])).toEqual({
      rounds: 6,
      seed: 9,
      json: true,
    });
  });

  it.each([['--rounds=0'], ['--rounds=1.5'], ['--seed='], ['--never']])(
    'refuses %s',
    (argument) => {
      expect(() => readOptions([argument])).toThrow(UsageError);
    },
  );
});
