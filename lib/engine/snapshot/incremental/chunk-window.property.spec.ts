import fc from 'fast-check';
import { describe, it } from 'vitest';
import {
  Run,
  type Setting,
  type Step,
  STEP_NAMES,
  type StepName,
} from '../../../../test/support/modelled/schedule.js';

/** How often each step comes, next to the others. */
const WEIGHTS: Readonly<Record<StepName, number>> = {
  begin: 6,
  write: 12,
  move: 6,
  remove: 3,
  truncate: 1,
  savepoint: 2,
  commit: 4,
  commitAndShow: 6,
  commitAsynchronously: 6,
  flush: 1,
  show: 4,
  rollBack: 1,
  writeElse: 2,
  send: 9,
  answer: 6,
  receive: 14,
  read: 14,
  add: 9,
  poll: 3,
  take: 12,
  crash: 1,
};
const RUNS = 3_000;
const TIMEOUT_MS = 120_000;

/** So that rows come to lack columns, and are looked for. */
const WEIGHTS_OF_MOVES: typeof WEIGHTS = {
  ...WEIGHTS,
  write: 6,
  move: 16,
  remove: 1,
  commit: 6,
  read: 24,
  add: 16,
  crash: 2,
};
/** So that the consumer ends between what belongs together. */
const WEIGHTS_OF_CRASHES: typeof WEIGHTS = {
  ...WEIGHTS_OF_MOVES,
  commitAndShow: 12,
  send: 16,
  receive: 30,
  take: 24,
  crash: 12,
};
/** Before the slot begins there is only the source. */
const WEIGHTS_BEFORE: Partial<typeof WEIGHTS> = {
  begin: 3,
  write: 4,
  move: 1,
  remove: 1,
  commit: 2,
  commitAndShow: 1,
  show: 1,
};

function stepsBy(
  weights: Partial<typeof WEIGHTS>,
  maxLength: number,
): fc.Arbitrary<Step[]> {
  const number = fc.nat({ max: 209 });
  const names = STEP_NAMES.map((name) => ({
    weight: weights[name] ?? 0,
    arbitrary: fc.constant(name),
  }));
  return fc.array(fc.tuple(fc.oneof(...names), number, number), {
    maxLength,
    size: 'max',
  });
}

function settings(kind: Setting['kind']): fc.Arbitrary<Setting> {
  return fc.record({
    kind: fc.constant(kind),
    inRecovery: fc.boolean(),
    firstXid: fc.constantFrom(
      750n,
      2n ** 32n - 6n,
      2n ** 32n + 2n,
      7n * 2n ** 32n - 4n,
    ),
    rows: fc.nat({ max: 10 }),
    chunkRows: fc.integer({ min: 1, max: 4 }),
    pendingChunks: fc.integer({ min: 1, max: 4 }),
    changedBytes: fc.constantFrom(300, 800, 1_000_000),
    lackingBytes: fc.constantFrom(10, 400, 1_000_000),
  });
}

function play(
  setting: Setting,
  before: readonly Step[],
  after: readonly Step[],
): void {
  const run = new Run(setting);
  for (const step of before) run.step(step);
  run.beginSlot();
  for (const step of after) run.step(step);
  run.finish();
  run.compare();
}

describe('A copy beside the stream', () => {
  for (const kind of ['keyed', 'full', 'keyless'] as const)
    it(
      `leaves in the sink what is in the source, whatever happens meanwhile: ${kind} table`,
      () => {
        const seed = Date.now() | 0;
        console.log(`seed ${seed} for a ${kind} table`);
        fc.assert(
          fc.property(
            settings(kind),
            stepsBy(WEIGHTS_BEFORE, 30),
            fc.oneof(
              stepsBy(WEIGHTS, 250),
              stepsBy(WEIGHTS_OF_MOVES, 400),
              stepsBy(WEIGHTS_OF_CRASHES, 400),
            ),
            play,
          ),
          { numRuns: RUNS, seed },
        );
      },
      TIMEOUT_MS,
    );
});

describe('A row whose commits are visible before they are flushed', () => {
  const answered: Step[] = [
    ['answer', 0, 0],
    ['receive', 1, 0],
  ];
  const changed: Step[] = [
    ['begin', 0, 0],
    ['write', 0, 0],
    ['commitAsynchronously', 0, 0],
  ];

  it('does not come before they are streamed, whatever the server answers', () => {
    play(
      {
        kind: 'keyed',
        inRecovery: false,
        firstXid: 750n,
        rows: 4,
        chunkRows: 1,
        pendingChunks: 1,
        changedBytes: 1_000_000,
        lackingBytes: 1_000_000,
      },
      [],
      [
        ...changed,
        ...changed,
        ['read', 0, 0],
        ['read', 0, 0],
        ['add', 0, 0],
        ...Array.from({ length: 9 }, () => answered).flat(),
        ['take', 0, 0],
      ],
    );
  });
});

describe('A row that comes to lack columns behind what is copied', () => {
  const setting: Setting = {
    kind: 'keyed',
    inRecovery: false,
    firstXid: 750n,
    rows: 4,
    chunkRows: 1,
    pendingChunks: 1,
    changedBytes: 1_000_000,
    lackingBytes: 1_000_000,
  };
  const begin: Step = ['begin', 0, 0];
  const commit: Step = ['commitAndShow', 0, 0];
  const take: Step = ['take', 0, 0];
  /** From the last key to the first, without the large value. */
  const move: Step = ['move', 0, 3];
  /** The first row is copied, and removed. */
  const copied: Step[] = [
    ['read', 0, 0],
    ['read', 0, 0],
    ['add', 0, 0],
    ['answer', 0, 0],
    ['receive', 1, 0],
    ['answer', 0, 0],
    ['receive', 1, 0],
    take,
  ];
  const removed: Step[] = [begin, ['remove', 0, 0]];
  const crash = (again: number): Step => ['crash', 0, again];

  it.each([
    ['at once', 1, 1],
    ['at once', 1, 2],
    ['before its end', 0, 1],
    ['before its end', 0, 2],
  ])(
    'is given them, when its transaction is handed over %s and a crash follows (%i, %i)',
    (_, arriving, takes) => {
      const changes: Step[] = [...removed, move, commit, ['send', 0, 0]];
      play(
        setting,
        [],
        [
          ...copied,
          ...changes,
          ['receive', arriving, 4],
          ...Array.from({ length: takes }, () => take),
          crash(0),
        ],
      );
    },
  );

  it('is, also when a crash follows while transactions come again', () => {
    const changes: Step[] = [
      ...removed,
      // Another row comes to lack columns.
      ['move', 0, 92],
      commit,
      begin,
      move,
      commit,
      ['send', 0, 0],
      ['send', 0, 0],
    ];
    const received: Step[] = [
      ['receive', 1, 4],
      ['receive', 1, 4],
      take,
      take,
      take,
      take,
      crash(2),
      ['send', 0, 0],
      ['receive', 1, 3],
      take,
      crash(0),
    ];
    play(setting, [], [...copied, ...changes, ...received]);
  });
});
