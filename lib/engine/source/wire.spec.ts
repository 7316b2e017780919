import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readFrame, writeStatus } from './wire.js';

/** 2026-01-02T03:04:05.123Z */
const NOW_MS = 1_767_323_045_123;

function bytes(hex: string): Buffer {
  return Buffer.from(hex.replaceAll(' ', ''), 'hex');
}

describe('readFrame', () => {
  it('reads data', () => {
    const frame = readFrame(
      bytes('77 00000016b374d848 00000016b374d900 0002ea6b3a1f2c00 42010203'),
    );
    expect(frame).toEqual({
      kind: 'data',
      start: 0x16_b374_d848n,
      payload: bytes('42010203'),
    });
  });

  it('reads a keepalive that asks and one that does not', () => {
    const start = '6b ffffffffffffffff 0002ea6b3a1f2c00';
    expect(readFrame(bytes(`${start} 01`))).toEqual({
      kind: 'keepalive',
      walEnd: 0xffff_ffff_ffff_ffffn,
      replyAsked: true,
    });
    expect(readFrame(bytes(`${start} 00`))).toMatchObject({
      replyAsked: false,
    });
  });

  it.each([
    ['nothing', ''],
    ['an unknown kind', '78 00000000000000010000000000000001'],
    ['data without a whole header', '77 0000000000000001'],
    ['a short keepalive', '6b 0000000000000001 0000000000000001'],
    ['a long keepalive', '6b 0000000000000001 0000000000000001 0100'],
  ])('takes %s for malformed', (_, hex) => {
    expect(readFrame(bytes(hex))).toEqual({ kind: 'malformed' });
  });

  it('never throws', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (chunk) => {
        expect(['data', 'keepalive', 'malformed']).toContain(
          readFrame(Buffer.from(chunk)).kind,
        );
      }),
    );
  });
});

describe('writeStatus', () => {
  it('sends write, flush and apply as three numbers, the time and the question (A06)', () => {
    const status = { write: 0x30n, flush: 0x20n, apply: 0x10n };
    // 2000-01-01 is 946684800 s after 1970-01-01: the time is 820,638,245,123,000 microseconds.
    expect(writeStatus(status, NOW_MS, false).toString('hex')).toBe(
      bytes(
        '72 0000000000000030 0000000000000020 0000000000000010 0002ea5dbb16f3b8 00',
      ).toString('hex'),
    );
    expect(writeStatus(status, NOW_MS, true)[33]).toBe(1);
  });

  it('takes fractions of a millisecond and the highest position', () => {
    const highest = 0xffff_ffff_ffff_ffffn;
    const frame = writeStatus(
      { write: highest, flush: highest, apply: highest },
      NOW_MS + 0.75,
      false,
    );
    expect(frame.readBigUInt64BE(1)).toBe(highest);
    expect(frame.readBigInt64BE(25)).toBe(820_638_245_123_000n);
  });
});
