import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { heldBy } from '../../../test/support/spill-file-in-memory.js';
import { FrameCursor, FrameLog } from './frame-log.js';
import { SpillError } from './spill-error.js';

interface Frame {
  readonly subxid: number;
  /** The tag, and what stands behind the transaction id. */
  readonly payload: Buffer;
}

const LARGEST_BLOCK = 256 * 1024;

/** Appends as from a socket: among other bytes, which are overwritten afterwards. */
function append(log: FrameLog, { subxid, payload }: Frame): void {
  const bytes = Buffer.concat([Buffer.alloc(7, 1), payload, Buffer.alloc(5)]);
  log.append(subxid, payload.readUInt8(0), bytes, 8, 7 + payload.length);
  bytes.fill(0);
}

function framesIn(blocks: readonly Buffer[]): Frame[] {
  return blocks.flatMap((block) => {
    const frames: Frame[] = [];
    const cursor = new FrameCursor(block);
    while (cursor.next()) {
      const { subxid, start, end } = cursor;
      frames.push({ subxid, payload: block.subarray(start, end) });
    }
    return frames;
  });
}

/** Comparing large buffers byte by byte takes seconds. */
function print({ subxid, payload }: Frame): string {
  const hash = createHash('sha1').update(payload).digest('hex');
  return `${subxid} ${payload.length} ${hash}`;
}

function frame(subxid: number, size: number, fill = 0x61): Frame {
  return { subxid, payload: Buffer.alloc(size, fill) };
}

const frames = fc.array(
  fc.record({
    subxid: fc.constantFrom(0, 3, 700, 701, 702, 2 ** 31, 2 ** 32 - 1),
    payload: fc
      .tuple(
        fc.oneof(
          { weight: 8, arbitrary: fc.integer({ min: 1, max: 40 }) },
          { weight: 3, arbitrary: fc.integer({ min: 1, max: 20_000 }) },
          {
            weight: 1,
            arbitrary: fc.integer({ min: 100_000, max: 2 * LARGEST_BLOCK }),
          },
        ),
        fc.nat({ max: 255 }),
      )
      .map(([size, fill]) => Buffer.alloc(size, fill)),
  }),
  { maxLength: 60 },
);

/** Goes through all of it, and gives what it returns. */
function drain(steps: Generator<void, boolean, void>): boolean {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

describe('a frame log', () => {
  it('gives its frames as they were appended, and counts what it holds', () => {
    const seed = Date.now() | 0;
    console.log(`seed ${seed} for a frame log`);
    fc.assert(
      fc.property(
        frames,
        frames,
        fc.uniqueArray(fc.constantFrom(0, 700, 2 ** 32 - 1)),
        fc.nat({ max: 3 }),
        (before, after, left, shifts) => {
          const log = new FrameLog();
          for (const one of before) append(log, one);
          expect(drain(log.leaveOut(new Set(left)))).toBe(true);
          for (const one of after) append(log, one);
          const { bytes, length } = log;
          const given: Buffer[] = [];
          for (let n = 0; n < shifts; n++) {
            const block = log.shift();
            if (block !== undefined) given.push(block);
            expect(log.bytes).toBe(bytes - heldBy(given));
          }
          given.push(...log.take());
          const kept = before.filter(({ subxid }) => !left.includes(subxid));
          expect(framesIn(given).map(print)).toEqual(
            [...kept, ...after].map(print),
          );
          expect(bytes).toBe(heldBy(given));
          expect(length).toBe(given.reduce((sum, b) => sum + b.length, 0));
          expect([log.bytes, log.length, log.shift()]).toEqual([
            0,
            0,
            undefined,
          ]);
        },
      ),
      { numRuns: 300, seed },
    );
  });

  it('leaves frames out block by block, and no more once a block was given away', () => {
    const log = new FrameLog();
    for (let n = 0; n < 3_000; n++) append(log, frame(n % 3, 1_000));
    const { length } = log;
    const leaving = log.leaveOut(new Set([1]));
    leaving.next();
    const left = length - log.length;
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThan(LARGEST_BLOCK);
    append(log, frame(1, 10));
    log.shift();
    expect(leaving.next()).toEqual({ done: true, value: false });
    expect(framesIn(log.take()).filter((f) => f.subxid === 1)).not.toEqual([]);
  });

  it('begins with a small block, and makes none larger than 256 KiB but for a frame that needs one', () => {
    const log = new FrameLog();
    append(log, frame(1, 10));
    expect(log.bytes).toBe(16 * 1024);
    for (let n = 0; n < 2_000; n++) append(log, frame(1, 1_000));
    append(log, frame(1, 3 * LARGEST_BLOCK));
    append(log, frame(1, 10));
    const sizes = log.take().map(({ buffer }) => buffer.byteLength);
    expect(sizes.filter((size) => size > LARGEST_BLOCK)).toEqual([
      8 + 3 * LARGEST_BLOCK,
    ]);
    expect(sizes.length).toBeLessThan(20);
  });

  it('takes little more memory than the frames, however many are small', () => {
    const log = new FrameLog();
    for (let n = 0; n < 100_000; n++) append(log, frame(n, 30));
    expect(log.length).toBe(100_000 * 38);
    expect(log.bytes).toBeLessThan(log.length + 2 * LARGEST_BLOCK);
  });

  it('can be appended to between two of its blocks', () => {
    const log = new FrameLog();
    append(log, frame(1, 10, 1));
    const first = log.shift();
    append(log, frame(2, 10, 2));
    expect(framesIn([first ?? Buffer.of(), ...log.take()])).toEqual([
      frame(1, 10, 1),
      frame(2, 10, 2),
    ]);
  });
});

describe('a block that was on disk', () => {
  const log = new FrameLog();
  append(log, frame(1, 10));
  append(log, frame(2, 10));
  const [block = Buffer.of()] = log.take();

  it('is refused when it ends inside a frame', () => {
    for (let length = 1; length < block.length; length++) {
      if (length === 18) continue;
      expect(() => framesIn([block.subarray(0, length)])).toThrow(SpillError);
    }
  });

  it.each([0, 27, 2 ** 32 - 1])(
    'is refused when a frame claims to be %i bytes long',
    (length) => {
      const wrong = Buffer.from(block);
      wrong.writeUInt32BE(length, 18);
      expect(() => framesIn([wrong])).toThrow(SpillError);
    },
  );
});
