import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  insertFrame,
  streamAbortFrame,
  streamCommitFrame,
  streamedFrame,
  streamStartFrame,
  streamStopFrame,
} from '../../../../test/support/pgoutput-frames.js';
import { StreamMessages } from './stream-messages.js';

const HIGH = 0xfedc_ba98; // above 2^31
const ABORT = { lsn: 0xffff_ffff_ffff_fff0n, timeMicros: -1n };

const FRAMES = [
  streamStartFrame(HIGH),
  streamStartFrame(HIGH, false),
  streamStopFrame(),
  streamAbortFrame(HIGH, HIGH + 1),
  streamAbortFrame(HIGH, HIGH + 1, ABORT),
  streamCommitFrame(HIGH, 0xffff_ffff_ffff_ff00n, 0xffff_ffff_ffff_fff0n, 42n),
];

function read(frame: Buffer, start = 0, end = frame.length) {
  return new StreamMessages().read(frame, start, end);
}

/** One shape of each kind: what is not refused is whole. */
function expectFaultOrWhole(message: ReturnType<typeof read>): void {
  switch (message?.kind) {
    case undefined:
    case 'stream-stop':
      return;
    case 'fault':
      expect(message.code).toBe('decode_failure');
      expect(message.detail).toMatch(/^stream message: [\w ]+$/);
      return;
    case 'stream-start':
      expect(typesOf(message)).toEqual(['string', 'uint32', 'boolean']);
      return;
    case 'stream-abort':
      expect(typesOf(message)).toEqual(['string', 'uint32', 'uint32']);
      return;
    case 'stream-commit':
      expect(typesOf(message)).toEqual([
        'string',
        'uint32',
        'bigint',
        'bigint',
        'bigint',
      ]);
  }
}

function typesOf(message: object): string[] {
  return Object.values(message).map((value: unknown) =>
    typeof value === 'number' && value >= 0 && value < 2 ** 32
      ? 'uint32'
      : typeof value,
  );
}

describe('the messages that carry running transactions', () => {
  it('are read, with ids above 2^31 unsigned (M22), and the longer abort of protocol 4', () => {
    expect(FRAMES.map((frame) => read(frame))).toStrictEqual([
      { kind: 'stream-start', xid: HIGH, first: true },
      { kind: 'stream-start', xid: HIGH, first: false },
      { kind: 'stream-stop' },
      { kind: 'stream-abort', xid: HIGH, subxid: HIGH + 1 },
      { kind: 'stream-abort', xid: HIGH, subxid: HIGH + 1 },
      {
        kind: 'stream-commit',
        xid: HIGH,
        commitLsn: 0xffff_ffff_ffff_ff00n,
        endLsn: 0xffff_ffff_ffff_fff0n,
        commitTimeMicros: 42n,
      },
    ]);
  });

  it('are told from all others, also from nothing', () => {
    const tags = Array.from({ length: 256 }, (_, tag) => tag).filter(
      (tag) => !Buffer.from('SEAc').includes(tag),
    );
    expect(tags.map((tag) => read(Buffer.of(tag, 0, 0, 0, 0)))).toEqual(
      tags.map(() => null),
    );
    expect(read(streamedFrame(HIGH, insertFrame(1, ['secret'])))).toBeNull();
    expect(read(Buffer.from('S'), 1, 1)).toBeNull();
  });

  it('are refused when a beginning of them is there only', () => {
    for (const whole of FRAMES) {
      for (let length = 1; length < whole.length; length++) {
        // The abort of protocol 2 is the beginning of that of protocol 4.
        if (whole.at(0) === 0x41 && length === 9) continue;
        expect(read(whole.subarray(0, length))).toEqual({
          kind: 'fault',
          code: 'decode_failure',
          detail: 'stream message: ends early',
        });
      }
    }
  });

  it('are read and refused alike among other messages', () => {
    for (const whole of FRAMES) {
      const among = Buffer.concat([
        Buffer.alloc(9, 0x74),
        whole,
        Buffer.alloc(300, 0x74),
      ]);
      for (let length = 1; length <= whole.length; length++)
        expect(read(among, 9, 9 + length)).toEqual(
          read(whole.subarray(0, length)),
        );
    }
  });

  it('are refused when more follows', () => {
    for (const whole of FRAMES)
      expect(read(Buffer.concat([whole, Buffer.of(0)]))).toMatchObject({
        kind: 'fault',
        code: 'decode_failure',
      });
  });

  it('are a fault or whole with flipped bits', () => {
    const seed = Date.now() | 0;
    console.log(`seed ${seed} for flipped bits of stream messages`);
    fc.assert(
      fc.property(
        fc.constantFrom(...FRAMES),
        fc.array(fc.nat(), { minLength: 1, maxLength: 4 }),
        (whole, bits) => {
          const flipped = Buffer.from(whole);
          for (const bit of bits) {
            const at = (bit >> 3) % flipped.length;
            flipped.writeUInt8(flipped.readUInt8(at) ^ (1 << (bit & 7)), at);
          }
          expectFaultOrWhole(read(flipped));
        },
      ),
      { numRuns: 2_000, seed },
    );
  });

  it('are a fault or whole with random bytes', () => {
    const seed = Date.now() | 0;
    console.log(`seed ${seed} for random bytes of stream messages`);
    fc.assert(
      fc.property(
        fc.constantFrom(...Buffer.from('SEAc')),
        fc.uint8Array({ maxLength: 40 }),
        (tag, rest) => expectFaultOrWhole(read(Buffer.of(tag, ...rest))),
      ),
      { numRuns: 2_000, seed },
    );
  });
});
