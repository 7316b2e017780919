import { describe, expect, it } from 'vitest';
import { benchLine } from '../support/bench-line.js';
import { noPluginServer } from '../support/plugin-suite.js';
import { RowChecksum } from './checksum.js';
import { DECODER_TARGETS } from './decoders/targets.js';
import { withCpuOfPgoutput } from './decoders/yardstick.js';
import { planLoads } from './loads.js';
import { medians, type Results } from './report.js';
import { withGrowth } from './snapshot/growth.js';
import { snapshotLoads } from './snapshot/snapshot-loads.js';
import { SNAPSHOT_TARGETS } from './snapshot/targets.js';
import { missedTargets } from './targets.js';
import { takeTurns } from './turns.js';

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
  [SNAPSHOT_TARGETS, 'rows2M', 'incremental', 'ofCopy', 0.4, 0.39],
  [SNAPSHOT_TARGETS, 'rows2M', 'incremental', 'aboveIdleMb', 100, 100.1],
  [SNAPSHOT_TARGETS, 'rows2M', 'incremental', 'growth', 1.2, 1.21],
  [DECODER_TARGETS, 'single', 'wal2json', 'cpuOfPgoutput', 2.5, 2.51],
])(
  'misses one of %o in %s when of %s %s is %s no more',
  (targets, load, reader, figure, bound, value) => {
    const missed = (measured: number | null): string[] =>
      missedTargets(
        new Map([[load, new Map([[reader, { [figure]: measured }]])]]),
        targets,
      );
    expect(missed(bound)).toEqual([]);
    expect(missed(null)).toEqual([]);
    expect(missed(value)).toEqual([
      expect.stringContaining(
        `${load}, ${reader}: ${figure} ${value}, and not`,
      ),
    ]);
  },
);

it('compares the CPU time of decoders with that of pgoutput', () => {
  const of = (clientCpuSeconds: number | null) => ({ clientCpuSeconds });
  const results: Results = new Map([
    [
      'single',
      new Map([
        ['pgoutput', of(2)],
        ['wal2json', of(5.1)],
        ['pglogical', of(null)],
      ]),
    ],
    ['rows100', new Map([['wal2json', of(3)]])],
  ]);
  const compared = withCpuOfPgoutput(results);
  const times = (load: string, reader: string) =>
    compared.get(load)?.get(reader)?.['cpuOfPgoutput'];
  expect(times('single', 'pgoutput')).toBe(1);
  expect(times('single', 'wal2json')).toBe(2.55);
  expect(times('single', 'pglogical')).toBeNull();
  expect(times('rows100', 'wal2json')).toBeNull();
});

describe('turns', () => {
  const readers = ['a', 'b', 'c'].map((name) => ({ name }));

  it('begin one reader further in each round, and are compared by round', async () => {
    const order: string[] = [];
    const { figures, failures } = await takeTurns({
      load: 'x',
      readers,
      rounds: 3,
      async read({ name }) {
        order.push(name);
        return order.length;
      },
      describe: (at) => `${at}`,
      measured: (round) =>
        new Map([...round].map(([name, at]) => [name, { at, of: round.size }])),
    });
    expect(order.join('')).toBe('abcbcacab');
    expect(figures.get('a')).toEqual({ at: 6, of: 3 });
    expect([...figures.keys()]).toEqual(['a', 'b', 'c']);
    expect(failures).toEqual([]);
  });

  it('that fail are told, and not in the medians', async () => {
    let turns = 0;
    const { figures, failures } = await takeTurns({
      load: 'x',
      readers,
      rounds: 2,
      async read({ name }) {
        turns++;
        if (name === 'b' || turns === 1) throw new Error('it broke');
        return turns;
      },
      describe: (at) => `${at}`,
      measured: (round) =>
        new Map([...round].map(([name, at]) => [name, { at }])),
    });
    expect(failures).toEqual([
      'x, a: it broke',
      'x, b: it broke',
      'x, b: it broke',
    ]);
    // Its turn of the second round.
    expect(figures.get('a')).toEqual({ at: 6 });
    expect(figures.has('b')).toBe(false);
  });
});

const MACHINE = String.raw`"clientCpuSeconds":(null|[\d.]+),"serverCpuSeconds":(null|[\d.]+),"peakRssMb":(null|[\d.]+)`;

describe.each([
  {
    bench: 'consume',
    load: 'rows100',
    readers: ['nestjs-replicant', 'raw', 'server'],
    figures: String.raw`"wallSeconds":[\d.]+,"rowsPerSecond":[\d.]+,${MACHINE}`,
    leftOut: false,
  },
  {
    bench: 'decoders',
    load: 'rows100',
    readers: ['pgoutput', 'wal2json', 'pglogical'],
    figures: String.raw`"wallSeconds":[\d.]+,"rowsPerSecond":[\d.]+,${MACHINE},"cpuOfPgoutput":[\d.]+`,
    leftOut: noPluginServer,
  },
  {
    bench: 'snapshot',
    load: 'rows200k',
    readers: ['raw', 'cursor', 'initial-text', 'initial-exact', 'incremental'],
    figures: String.raw`"wallSeconds":[\d.]+,"rowsPerSecond":[\d.]+,"ofCopy":[\d.]+,"clientCpuSeconds":[\d.]+,"peakRssMb":[\d.]+,"aboveIdleMb":[\d.]+,"growth":null`,
    leftOut: false,
  },
])('$bench', ({ bench, load, readers, figures, leftOut }) => {
  it.skipIf(leftOut)(
    'runs from the command line and ends with a line of JSON',
    async () => {
      // A reader that has seen other rows than the source has is not in it.
      const last = await benchLine(bench, load, readers);
      const found = readers.map((reader) => `"${reader}":{}`).join(',');
      expect(last.replaceAll(new RegExp(`{${figures}}`, 'g'), '{}')).toBe(
        `{"bench":"${bench}","loads":{"${load}":{${found}}}}`,
      );
    },
    120_000,
  );
});
