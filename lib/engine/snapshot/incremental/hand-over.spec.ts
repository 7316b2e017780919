import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ChunkWork } from '../../deliver/work.js';
import { decodeProgress, encodeProgress } from '../../model/progress-token.js';
import type { TableState } from '../../model/snapshot-progress.js';
import type { PublishedTable } from '../../server/published-table.js';
import { BackfillPlan } from './backfill-plan.js';
import { HandOver } from './hand-over.js';

function table(place: number): PublishedTable {
  const name = `t${place}`;
  return {
    oid: 16_384 + place,
    schema: 'public',
    table: name,
    name: `public.${name}`,
    quotedName: `public.${name}`,
    partitioned: false,
    replicaIdentity: 'default',
    columns: [],
    orderKey: null,
    identityKey: null,
    rowFilter: null,
    estimatedRows: null,
    estimatedRowBytes: null,
  };
}

const MAKER = {
  whole: () => {
    throw new Error('There are no rows.');
  },
  fill: () => {
    throw new Error('There are no rows.');
  },
};

/** A copy of so many tables, and the calls that wait for the sink. */
function copyOf(count: number) {
  const tables = Array.from({ length: count }, (_, place) => table(place));
  const plan = new BackfillPlan({
    tables,
    floor: 16n,
    progress: null,
    appliedThrough: null,
    streamedFrom: 16n,
    fresh: true,
  });
  const queue: ChunkWork[] = [];
  const handOver = new HandOver(plan, {
    pipeline: 'orders',
    slotName: 'orders',
    deliver: (work) => queue.push(work),
  });
  const clear = (place: number): void => {
    const planned = plan.find(table(place).oid);
    if (planned === null) throw new Error('The plan lacks the table.');
    planned.state = { state: 'waiting' };
    handOver.clearing(
      { table: planned.table, shape: '', maker: MAKER },
      () => {},
    );
  };
  return { plan, queue, handOver, clear };
}

const STATES: readonly TableState[] = [
  { state: 'waiting' },
  { state: 'copying', pages: 3 },
  {
    state: 'reading',
    bound: { order: [['id', 'int4']], values: ['7'] },
    lacking: { columns: ['id'], keys: [['x'.repeat(10_000)]] },
  },
  { state: 'done' },
];

describe('what is handed over', () => {
  it('tells the progress as it was when the call was queued, however late that is written', () => {
    const step = fc.record({
      place: fc.nat({ max: 5 }),
      to: fc.constantFrom<'add' | 'complete' | 'uncertain' | TableState>(
        'add',
        'complete',
        'uncertain',
        ...STATES,
      ),
      told: fc.boolean(),
      taken: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const { plan, queue, handOver } = copyOf(4);
        const expected: string[] = [];
        const stored: (string | null)[] = [];
        for (const { place, to, told, taken } of steps) {
          const planned = plan.find(table(place).oid);
          if (to === 'add') plan.add(table(place));
          else if (to === 'complete') plan.complete();
          else if (to === 'uncertain') plan.uncertainSince(BigInt(place));
          else if (planned !== null) planned.state = to;
          if (told) {
            handOver.progress();
            expected.push(encodeProgress(plan.progress));
          }
          if (taken) stored.push(...queue.splice(0, 1).map(progressOf));
        }
        stored.push(...queue.map(progressOf));
        expect(stored).toEqual(expected);
      }),
    );
  });

  it('counts as what the stream has brought only when it brings progress alone', () => {
    const { plan, queue, handOver, clear } = copyOf(1);
    clear(0);
    const planned = plan.tables[0];
    for (const state of STATES) {
      if (planned !== undefined) planned.state = state;
      handOver.progress();
    }
    plan.complete();
    handOver.complete(() => {});
    const [clearing, waiting, copying, reading, done, complete] = queue.map(
      ({ bytes }) => bytes,
    );
    expect([clearing, complete]).toEqual([0, 0]);
    for (const bytes of [waiting, copying, done])
      expect(bytes).toBeLessThan(1_000);
    expect(reading).toBeGreaterThan(10_000);
  });

  it('holds no list of tables while it waits', () => {
    const { queue, clear } = copyOf(5_000);
    const before = process.memoryUsage().heapUsed;
    for (let place = 0; place < 5_000; place += 1) clear(place);
    // With the text of each, more than a gigabyte.
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(64_000_000);
    const texts = queue.slice(0, 100).map((work) => progressOf(work) ?? '');
    for (const text of texts) expect(text.length).toBeLessThan(20_000);
    const states = decodeProgress(texts[99] ?? '').tables.map(
      ({ state }) => state,
    );
    expect(states.lastIndexOf('waiting')).toBe(99);
    expect(states.indexOf('uncleared')).toBe(100);
  });
});

function progressOf(work: ChunkWork): string | null {
  return work.begin().context.progress;
}
