import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  asksForReply,
  frameKind,
  framePosition,
  writeStatus,
  XLOG_DATA_HEADER,
} from './wire.js';

/** 2026-01-02T03:04:05.123Z */
const NOW_MS = 1_767_323_045_123;

function bytes(hex: string): Buffer {
  return Buffer.from(hex.replaceAll(' ', ''), 'hex');
}

/** Everything that is read of a frame, which lies among other bytes. */
function read(frame: Buffer) {
  const among = Buffer.concat([Buffer.alloc(3, 0x77), frame, Buffer.of(0x6b)]);
  const end = 3 + frame.length;
  const kind = frameKind(among, 3, end);
  return kind === 'malformed'
    ? { kind }
    : {
        kind,
        position: framePosition(among, 3),
        ...(kind === 'keepalive' ? { replyAsked: asksForReply(among, 3) } : {}),
      };
}

describe('a frame', () => {
  it('of data has a position', () => {
    const frame = bytes(
      '77 00000016b374d848 00000016b374d900 0002ea6b3a1f2c00 42010203',
    );
    expect(read(frame)).toEqual({ kind: 'data', position: 0x16_b374_d848n });
    expect(frame.toString('hex', XLOG_DATA_HEADER)).toBe('42010203');
  });

  it('of data may be empty', () => {
    const frame = bytes(
      '77 0000000000000001 0000000000000001 0000000000000001',
    );
    expect(read(frame)).toEqual({ kind: 'data', position: 1n });
  });

  it('that tells the position of the server asks for an answer or does not', () => {
    const start = '6b ffffffffffffffff 0002ea6b3a1f2c00';
    const position = 0xffff_ffff_ffff_ffffn;
    expect(read(bytes(`${start} 01`))).toEqual({
      kind: 'keepalive',
      position,
      replyAsked: true,
    });
    expect(read(bytes(`${start} 00`))).toEqual({
      kind: 'keepalive',
      position,
      replyAsked: false,
    });
  });

  it.each([
    ['of no bytes', ''],
    ['of an unknown kind', '78 00000000000000010000000000000001'],
    ['of data without a whole header', '77 0000000000000001'],
    ['of a short keepalive', '6b 0000000000000001 0000000000000001'],
    ['of a long keepalive', '6b 0000000000000001 0000000000000001 0100'],
  ])('%s is malformed', (_, hex) => {
    expect(read(bytes(hex))).toEqual({ kind: 'malformed' });
  });

  it('of any bytes is read without a throw', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (frame) => {
        expect(['data', 'keepalive', 'malformed']).toContain(
          read(Buffer.from(frame)).kind,
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
