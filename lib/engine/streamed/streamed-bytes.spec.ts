import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { streamAbortFrame } from '../../../test/support/pgoutput-frames.js';
import { heldBy } from '../../../test/support/spill-file-in-memory.js';
import { Keeping } from '../../../test/support/streamed/keeping.js';
import { SpillError } from './spill-error.js';

const FIRST_BLOCK = 16 * 1024;
const HIGH = 0xffff_fff0; // near the end of transaction ids

describe('a transaction that does not fit into memory', () => {
  const large = 'x'.repeat(FIRST_BLOCK - 30);

  it('ends the stream where there is no disk, with the option that helps', () => {
    const subject = new Keeping({ bytes: 3 * FIRST_BLOCK }, false);
    subject.part(1, [[1, 'a']], true);
    subject.part(2, [[2, 'b']], true);
    expect(subject.halts).toEqual([]);
    subject.part(1, [
      [1, large],
      [1, large],
    ]);
    expect(subject.halts[0]?.halt.code).toBe('transaction_too_large');
    expect(subject.halts[0]?.halt.detail).toContain(
      'option streaming has no spill',
    );
  });

  it('goes to disk, the largest first, and is given from there, then from memory', async () => {
    const subject = new Keeping({ bytes: 6 * FIRST_BLOCK });
    subject.part(1, [[1, 'a']], true);
    subject.part(
      2,
      [
        [2, 'b'],
        [2, large],
      ],
      true,
    );
    expect(subject.files.files.size).toBe(0);
    subject.part(1, [
      [1, 'c'],
      [1, 'd'],
    ]);
    subject.part(3, [[3, 'e']], true);
    expect([...subject.files.files.keys()]).toEqual([2]);
    subject.part(2, [[2, 'f']]);
    await subject.files.finish();
    const committed = subject.commit(2);
    expect(subject.files.files.get(2)?.removed).toBe(false);
    expect(await subject.textsOf(committed)).toEqual(['b', large, 'f']);
    expect(subject.files.files.get(2)?.removed).toBe(true);
    expect(await subject.textsOf(subject.commit(1))).toEqual(['a', 'c', 'd']);
  });

  it('keeps the server waiting while more than half of the bound is being written', async () => {
    const subject = new Keeping({ bytes: 4 * FIRST_BLOCK });
    subject.part(
      1,
      [
        [1, 'a'],
        [1, large],
        [1, 'b'],
      ],
      true,
    );
    expect(subject.told).toEqual(['hold']);
    expect(subject.transactions.bytes).toBeGreaterThan(2 * FIRST_BLOCK);
    await subject.files.finish();
    expect(subject.told.slice(1)).toEqual([
      'release',
      expect.stringMatching(/^spilled 1 /),
    ]);
  });

  it('ends the stream when the disk may hold no more', async () => {
    const subject = new Keeping({ bytes: 2, bytesOnDisk: 100 });
    subject.part(1, [[1, 'a']], true);
    await subject.files.finish();
    expect(subject.transactions.bytesOnDisk).toBe(
      subject.files.files.get(1)?.bytes,
    );
    expect(subject.halts).toEqual([]);
    subject.part(1, [[1, 'a'.repeat(70)]]);
    expect(subject.halts[0]?.halt.code).toBe('spill_exhausted');
    expect(subject.halts[0]?.halt.detail).toContain('maxSpillBytes (100)');
  });

  it('ends the stream when writing fails, with the error of the system', async () => {
    const subject = new Keeping({ bytes: 2 });
    subject.part(1, [[1, 'secret']], true);
    subject.files.writes[0]?.done.reject(
      new SpillError('ENOSPC', 'writing a spill file failed: ENOSPC'),
    );
    await nextTurn();
    expect(subject.halts[0]?.halt).toMatchObject({
      code: 'spill_io_failed',
      detail: 'writing a spill file failed: ENOSPC',
    });
  });
});

describe('what was rolled back', () => {
  const LIMIT = 64 * 1024 * 1024;
  const rows = Array.from(
    { length: 1_000 },
    (_, n): readonly [number, string] => [2 + (n % 2), 'x'.repeat(100)],
  );

  /** Half of what fits into memory, and half of that rolled back; the next part does not fit. */
  function filled(): { readonly subject: Keeping; readonly parts: number } {
    const subject = new Keeping({ bytes: LIMIT });
    subject.part(1, rows, true);
    let parts = 1;
    for (; subject.transactions.bytes < LIMIT / 2 - 400_000; parts += 1)
      subject.part(1, rows);
    subject.take(streamAbortFrame(1, 2));
    while (subject.told.length === 0) subject.part(1, [[1, 'y'.repeat(9_000)]]);
    expect(subject.told).toEqual(['hold']);
    return { subject, parts };
  }

  it('is left out in many turns while nothing is read, and nothing else is', async () => {
    const { subject, parts } = filled();
    let turns = 0;
    for (; subject.told.length === 1; turns += 1) await nextTurn();
    expect(turns).toBeGreaterThan(1);
    expect(subject.told).toEqual(['hold', 'release']);
    expect(subject.files.writes).toEqual([]);
    expect(subject.transactions.bytes).toBeLessThan(LIMIT / 3);
    const texts = await subject.textsOf(subject.commit(1));
    expect(texts.filter((text) => text.startsWith('x'))).toHaveLength(
      parts * 500,
    );
  });

  it('is not given either when its transaction commits before that is done', async () => {
    const { subject, parts } = filled();
    await nextTurn();
    const texts = await subject.textsOf(subject.commit(1));
    expect(texts.filter((text) => text.startsWith('x'))).toHaveLength(
      parts * 500,
    );
    while (subject.told.at(-1) !== 'release') await nextTurn();
    expect(subject.transactions.bytes).toBe(0);
  });

  it.each(['is rolled back', 'is let go of'])(
    'is counted no more when its transaction %s before that is done',
    async (end) => {
      const { subject } = filled();
      await nextTurn();
      if (end === 'is let go of') subject.transactions.clear();
      else subject.take(streamAbortFrame(1, 1));
      while (subject.told.at(-1) !== 'release') await nextTurn();
      expect(subject.transactions.bytes).toBe(0);
    },
  );
});

type Step = readonly [
  what: 'rows' | 'abort' | 'abortWhole' | 'commit' | 'write',
  a: number,
  b: number,
];

const STEPS = fc.array(
  fc.tuple(
    fc.oneof(
      { weight: 10, arbitrary: fc.constant('rows' as const) },
      { weight: 3, arbitrary: fc.constant('abort' as const) },
      { weight: 1, arbitrary: fc.constant('abortWhole' as const) },
      { weight: 2, arbitrary: fc.constant('commit' as const) },
      { weight: 2, arbitrary: fc.constant('write' as const) },
    ),
    fc.nat({ max: 3 }),
    fc.nat({ max: 40_000 }),
  ),
  { maxLength: 80, size: 'max' },
);

/** Whatever is done with transactions, what is counted is what is held. */
class Play {
  readonly #subject: Keeping;
  readonly #subxids = new Map<number, number[]>();
  #next = HIGH;

  constructor(
    private readonly bytes: number,
    spills: boolean,
  ) {
    this.#subject = new Keeping({ bytes }, spills);
  }

  async step([what, a, b]: Step): Promise<void> {
    const { files } = this.#subject;
    const xid = [...this.#subxids.keys()][a];
    switch (what) {
      case 'rows':
        this.#rows(xid, b);
        break;
      case 'abort': {
        const last = this.#subxids.get(xid ?? 0)?.pop();
        if (xid !== undefined && last !== undefined)
          this.#subject.take(streamAbortFrame(xid, last));
        break;
      }
      case 'abortWhole':
        if (xid === undefined) return;
        this.#subject.take(streamAbortFrame(xid, xid));
        this.#subxids.delete(xid);
        break;
      case 'commit':
        if (xid !== undefined) await this.#commit(xid);
        break;
      case 'write':
        await files.finish(1);
    }
    await this.#roomMade();
    this.#check();
  }

  /** To leave out much takes several turns. */
  async #roomMade(): Promise<void> {
    const { transactions, files } = this.#subject;
    while (transactions.bytes - files.writing > this.bytes) await nextTurn();
  }

  async finish(): Promise<void> {
    for (const xid of this.#subxids.keys()) await this.#commit(xid);
    await this.#subject.files.finish();
    const { bytes, bytesOnDisk, count } = this.#subject.transactions;
    equal(
      { bytes, bytesOnDisk, count },
      { bytes: 0, bytesOnDisk: 0, count: 0 },
    );
    for (const file of this.#subject.files.files.values())
      equal(file.removed, true);
    equal(this.#subject.halts, []);
  }

  #rows(known: number | undefined, size: number): void {
    const xid = known ?? this.#xid();
    const subxids = this.#subxids.get(xid) ?? [];
    const isFirst = !this.#subxids.has(xid);
    if (size % 3 === 0) subxids.push(this.#xid());
    this.#subxids.set(xid, subxids);
    this.#subject.part(
      xid,
      [[subxids.at(-1) ?? xid, 'x'.repeat(size)]],
      isFirst,
    );
  }

  /** Drains one, block by block: each that is given away from memory is counted no more. */
  async #commit(xid: number): Promise<void> {
    this.#subxids.delete(xid);
    const { transactions, files } = this.#subject;
    await files.finish();
    const before = transactions.bytes;
    const transaction = this.#subject.commit(xid);
    equal(transactions.bytes, before);
    const onDisk = files.files.get(xid)?.written.length ?? 0;
    const given: Buffer[] = [];
    let number = 0;
    for await (const block of transaction.blocks()) {
      if (number++ >= onDisk) given.push(block);
      equal(transactions.bytes, before - heldBy(given));
    }
    transactions.settle(transaction);
    equal(transactions.bytes, before - heldBy(given));
  }

  #check(): void {
    const { transactions, files } = this.#subject;
    const inBlocks = transactions.bytes - files.writing;
    equal(inBlocks >= 0, true);
    const open = [...this.#subxids.keys()].flatMap(
      (xid) => files.files.get(xid) ?? [],
    );
    const pending = files.writes.filter(({ file }) => !file.removed);
    const onDisk =
      open.reduce((sum, { bytes }) => sum + bytes, 0) +
      pending.reduce(
        (sum, { blocks }) => sum + blocks.reduce((n, b) => n + b.length, 0),
        0,
      );
    equal(transactions.bytesOnDisk, onDisk);
  }

  #xid(): number {
    const xid = this.#next;
    this.#next = xid === 2 ** 32 - 1 ? 3 : xid + 1;
    return xid;
  }
}

describe('what is counted', () => {
  it('is what is held in memory and on disk, whatever happens', async () => {
    const seed = Date.now() | 0;
    console.log(`seed ${seed} for the bytes of streamed transactions`);
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(40_000, 300_000, 100_000_000),
        STEPS,
        async (bytes, steps) => {
          const play = new Play(bytes, bytes < 100_000_000);
          for (const step of steps) await play.step(step);
          await play.finish();
        },
      ),
      { numRuns: 200, seed },
    );
  });

  it('is nothing once everything was let go of, also when writes end later', async () => {
    const subject = new Keeping({ bytes: 2 });
    subject.part(1, [[1, 'a']], true);
    subject.part(2, [[2, 'b']], true);
    const committed = subject.commit(1);
    subject.transactions.clear();
    await subject.files.finish();
    subject.transactions.settle(committed);
    const { bytes, bytesOnDisk, count } = subject.transactions;
    expect([bytes, bytesOnDisk, count]).toEqual([0, 0, 0]);
  });
});

function equal(actual: unknown, expected: unknown): void {
  expect(actual).toEqual(expected);
}
