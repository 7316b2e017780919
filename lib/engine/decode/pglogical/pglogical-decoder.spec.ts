import { describe, expect, it } from 'vitest';
import {
  beginFrame,
  commitFrame,
  originFrame,
  startupFrame,
} from '../../../../test/support/pglogical-frames.js';
import { TypeTable } from '../../values/type-table.js';
import { PglogicalDecoder } from './pglogical-decoder.js';

const HIGH = 0xfedc_ba98; // above 2^31

function fresh(): PglogicalDecoder {
  return new PglogicalDecoder(new TypeTable('exact'), []);
}

/** After the startup message. */
function started(): PglogicalDecoder {
  const decoder = fresh();
  decoder.decode(startupFrame());
  return decoder;
}

describe('the startup message', () => {
  it.each([
    ['1', '1'],
    ['0', '3'],
  ])('takes a plugin that speaks versions %s to %s', (oldest, newest) => {
    const frame = startupFrame({
      min_proto_version: oldest,
      max_proto_version: newest,
    });
    expect(fresh().decode(frame)).toStrictEqual({ kind: 'aside' });
  });

  it.each([
    ['2', '3'],
    ['0', '0'],
  ])('refuses a plugin that speaks versions %s to %s', (oldest, newest) => {
    const frame = startupFrame({
      min_proto_version: oldest,
      max_proto_version: newest,
    });
    expect(fresh().decode(frame)).toStrictEqual({
      kind: 'fault',
      code: 'decoder/protocol_unsupported',
      detail: `startup: the plugin speaks the versions ${oldest} to ${newest} of its protocol`,
    });
  });

  it('refuses another format of the message', () => {
    expect(fresh().decode(startupFrame({}, 2))).toStrictEqual({
      kind: 'fault',
      code: 'decoder/protocol_unsupported',
      detail: 'startup: its format is not 1',
    });
  });

  it.each(['', 'one', '-1', '1.0'])('refuses %j as a version', (version) => {
    const frame = startupFrame({ max_proto_version: version });
    expect(fresh().decode(frame)).toStrictEqual({
      kind: 'fault',
      code: 'decode_failure',
      detail: 'startup: max_proto_version is no number',
    });
  });

  it('refuses a message without the versions', () => {
    expect(fresh().decode(Buffer.from('S\x01'))).toMatchObject({
      code: 'decode_failure',
      detail: 'startup: min_proto_version is no number',
    });
  });

  it('refuses every other message before it', () => {
    expect(fresh().decode(beginFrame(1n))).toStrictEqual({
      kind: 'fault',
      code: 'protocol_violation',
      detail: 'begin before startup',
    });
  });

  it('is not taken when it was refused', () => {
    const decoder = fresh();
    decoder.decode(startupFrame({ min_proto_version: '2' }));
    expect(decoder.decode(beginFrame(1n))).toMatchObject({ kind: 'fault' });
  });
});

describe('transaction messages', () => {
  it('reads Begin, with an xid above 2^31 unsigned', () => {
    expect(
      started().decode(beginFrame(0xffff_ffff_ffff_fff0n, HIGH, 1_000_001n)),
    ).toStrictEqual({
      kind: 'begin',
      finalLsn: 0xffff_ffff_ffff_fff0n,
      commitTimeMicros: 1_000_001n,
      xid: HIGH,
    });
  });

  it('reads Commit', () => {
    expect(started().decode(commitFrame(5n, 9n, 42n))).toStrictEqual({
      kind: 'commit',
      commitLsn: 5n,
      endLsn: 9n,
      commitTimeMicros: 42n,
    });
  });

  it('reads Origin', () => {
    expect(started().decode(originFrame(7n, 'søur'))).toStrictEqual({
      kind: 'origin',
      lsn: 7n,
      name: 'søur',
    });
  });

  it('takes an empty message behind Begin as an origin that was dropped since', () => {
    const decoder = started();
    decoder.decode(beginFrame(1n));
    const empty = Buffer.alloc(0);
    expect(decoder.decode(empty)).toStrictEqual({
      kind: 'origin',
      lsn: 0n,
      name: '',
    });
    expect(decoder.decode(empty)).toStrictEqual({
      kind: 'fault',
      code: 'decode_failure',
      detail: 'empty message',
    });
  });

  it.each([beginFrame(1n), originFrame(1n, 'o')])(
    'refuses flags, of which none is defined',
    (frame) => {
      frame.writeUInt8(1, 1);
      expect(started().decode(frame)).toMatchObject({
        kind: 'fault',
        code: 'decode_failure',
      });
    },
  );

  it('names a message that it does not know by its tag', () => {
    expect(started().decode(Buffer.from('M'))).toStrictEqual({
      kind: 'fault',
      code: 'unsupported_message',
      detail: 'unknown message tag 0x4d',
    });
  });
});
