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
const RUNS = Number(process.env['RUNS'] ?? 4_000);

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
    it(`leaves in the sink what is in the source, whatever happens meanwhile: ${kind} table`, () => {
      const seed = Date.now() | 0;
      console.log(`seed ${seed} for a ${kind} table`);
      fc.assert(
        fc.property(
          settings(kind),
          stepsBy(WEIGHTS_BEFORE, 30),
          fc.oneof(stepsBy(WEIGHTS, 250), stepsBy(WEIGHTS_OF_MOVES, 400)),
          play,
        ),
        { numRuns: RUNS, seed },
      );
    });
});
