import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { RowChecksum } from './checksum.js';
import { planLoads } from './loads.js';
import { medians, type Results } from './report.js';
import { withGrowth } from './snapshot/growth.js';
import { snapshotLoads } from './snapshot/snapshot-loads.js';
import { missedTargets } from './snapshot/targets.js';

const run = promisify(execFile);

const row = { id: '1', quantity: 2, label: 'x'.repeat(100), active: true };

function sumOf(...rows: Record<string, unknown>[]): number {
  const checksum = new RowChecksum();
  for (const one of rows) checksum.add(one);
  return checksum.sum;
}

describe('RowChecksum', () => {
  it.each([
    ['a value', { ...row, id: '2' }],
    ['a type', { ...row, id: 1 }],
    ['the end of a text', { ...row, label: `${'x'.repeat(99)}y` }],
    ['a length', { ...row, label: 'x'.repeat(101) }],
    ['NULL', { ...row, active: null }],
    ['the places of two values', { ...row, id: row.label, label: row.id }],
    ['a column less', { id: '1', quantity: 2, label: row.label }],
  ])('sees a difference in %s', (_what, other) => {
    expect(sumOf(row)).toBe(sumOf({ ...row }));
    expect(sumOf(other)).not.toBe(sumOf(row));
  });

  it('depends on what rows there are, not on their order', () => {
    const other = { ...row, id: '2' };
    expect(sumOf(row, other)).toBe(sumOf(other, row));
    expect(sumOf(row, row)).not.toBe(sumOf(row, other));
  });
});

it('gives loads under another congestion control its name', () => {
  const names = planLoads(1, ['bbr', 'cubic']).map(({ name }) => name);
  expect(names).toContain('rows100');
  expect(names).toContain('rows100-cubic');
  expect(planLoads(1, [null]).map(({ name }) => name)).not.toContain(
    'rows100-null',
  );
});

it('takes the median of each figure by itself', () => {
  const runs = [
    { wallSeconds: 3, peakRssMb: null },
    { wallSeconds: 1, peakRssMb: null },
    { wallSeconds: 2.5, peakRssMb: null },
  ];
  expect(medians(runs)).toEqual({ wallSeconds: 2.5, peakRssMb: null });
});

it('tells by how much more time grows than rows', () => {
  const results: Results = new Map([
    ['rows2M', new Map([['incremental', { wallSeconds: 22 }]])],
    [
      'rows200k',
      new Map([
        ['incremental', { wallSeconds: 2 }],
        ['initial-text', { wallSeconds: 1 }],
      ]),
    ],
  ]);
  const loads = snapshotLoads(1);
  const found = withGrowth(results, loads);
  expect(found.get('rows2M')?.get('incremental')).toEqual({
    wallSeconds: 22,
    growth: 1.1,
  });
  expect(found.get('rows200k')?.get('incremental')?.['growth']).toBeNull();
  results.delete('rows200k');
  expect(
    withGrowth(results, loads).get('rows2M')?.get('incremental')?.['growth'],
  ).toBeNull();
});

it.each([
  ['ofCopy', 0.4, 0.39],
  ['aboveIdleMb', 100, 100.1],
  ['growth', 1.2, 1.21],
])('misses a target when %s is %s no more', (figure, bound, value) => {
  const missed = (measured: number | null): string[] =>
    missedTargets(
      new Map([['rows2M', new Map([['incremental', { [figure]: measured }]])]]),
    );
  expect(missed(bound)).toEqual([]);
  expect(missed(null)).toEqual([]);
  expect(missed(value)).toEqual([
    expect.stringContaining(`rows2M, incremental: ${figure} ${value}, and not`),
  ]);
});

it.each([
  [
    'consume',
    'rows100',
    ['nestjs-replicant', 'raw', 'server'],
    /{"wallSeconds":[\d.]+,"rowsPerSecond":[\d.]+,"clientCpuSeconds":(null|[\d.]+),"serverCpuSeconds":(null|[\d.]+),"peakRssMb":(null|[\d.]+)}/g,
  ],
  [
    'snapshot',
    'rows200k',
    ['raw', 'cursor', 'initial-text', 'initial-exact', 'incremental'],
    /{"wallSeconds":[\d.]+,"rowsPerSecond":[\d.]+,"ofCopy":[\d.]+,"clientCpuSeconds":[\d.]+,"peakRssMb":[\d.]+,"aboveIdleMb":[\d.]+,"growth":null}/g,
  ],
])(
  '%s runs from the command line and ends with a line of JSON',
  async (bench, load, readers, figures) => {
    const { stdout } = await run(
      'npm',
      [
        'run',
        '--silent',
        'bench',
        '--',
        bench,
        '--rounds=1',
        '--scale=0.002',
        `--only=${load}`,
        `--readers=${readers.join(',')}`,
      ],
      { shell: process.platform === 'win32' },
    );
    const last = stdout.trimEnd().split('\n').at(-1) ?? '';
    const found = readers.map((reader) => `"${reader}":{}`).join(',');
    expect(last.replaceAll(figures, '{}')).toBe(
      `{"bench":"${bench}","loads":{"${load}":{${found}}}}`,
    );
  },
  120_000,
);
