import { describe, expect, it } from 'vitest';
import {
  beginFrame,
  commitFrame,
  messageFrame,
  originFrame,
  relationFrame,
  streamAbortFrame,
  truncateFrame,
  typeFrame,
} from '../../../../test/support/pgoutput-frames.js';
import { TypeTable } from '../../values/type-table.js';
import { PgoutputDecoder } from './pgoutput-decoder.js';

const HIGH = 0xfedc_ba98; // above 2^31

function decoder(): PgoutputDecoder {
  return new PgoutputDecoder(new TypeTable('exact'));
}

describe('transaction messages', () => {
  it('reads Begin, with an xid above 2^31 unsigned (M22)', () => {
    expect(
      decoder().decode(beginFrame(0xffff_ffff_ffff_fff0n, HIGH, 1_000_001n)),
    ).toStrictEqual({
      kind: 'begin',
      finalLsn: 0xffff_ffff_ffff_fff0n,
      commitTimeMicros: 1_000_001n,
      xid: HIGH,
    });
  });

  it('reads Commit, with a time before 2000 too', () => {
    expect(decoder().decode(commitFrame(5n, 9n, 42n))).toStrictEqual({
      kind: 'commit',
      commitLsn: 5n,
      endLsn: 9n,
      commitTimeMicros: 42n,
    });
  });

  it('reads Origin', () => {
    expect(decoder().decode(originFrame(7n, 'søur'))).toStrictEqual({
      kind: 'origin',
      lsn: 7n,
      name: 'søur',
    });
  });
});

it('reads the abort that a server sends though nothing of the transaction was (E08)', () => {
  expect(decoder().decode(streamAbortFrame(700, HIGH))).toStrictEqual({
    kind: 'abort',
    xid: 700,
    subxid: HIGH,
  });
});

function emitted(flags: number, content: Uint8Array): Buffer {
  return messageFrame({ flags, lsn: 3n, prefix: 'p', content });
}

describe('logical decoding messages', () => {
  it.each([
    [0, false],
    [1, true],
  ])('reads flags %i as transactional: %s', (flags, transactional) => {
    expect(decoder().decode(emitted(flags, Buffer.from('hi')))).toStrictEqual({
      kind: 'message',
      transactional,
      lsn: 3n,
      prefix: 'p',
      content: Buffer.from('hi'),
    });
  });

  it('refuses flags it does not know', () => {
    expect(decoder().decode(emitted(2, Buffer.of()))).toStrictEqual({
      kind: 'fault',
      code: 'decode_failure',
      detail: 'message: unknown flags',
    });
  });

  it('copies the content out of the reused buffer (D07)', () => {
    const payload = emitted(1, Buffer.from('secret'));
    const message = decoder().decode(payload);
    payload.fill(0);
    expect(message).toMatchObject({ content: Buffer.from('secret') });
  });
});

describe('relations', () => {
  it('reads names of any bytes, all flags and an OID above 2^31 (T01, M22)', () => {
    const read = decoder().decode(
      relationFrame({
        oid: HIGH,
        schema: 'схема',
        table: 'Größe_表😀',
        identity: 'i',
        columns: [
          { name: 'Ключ', typeOid: 23, key: true },
          { name: 'naïve col', typeOid: 1043, typeModifier: 14 },
          { name: 'u', typeOid: HIGH + 1 },
        ],
      }),
    );
    expect(read).toStrictEqual({
      kind: 'relation',
      relation: {
        oid: HIGH,
        schema: 'схема',
        table: 'Größe_表😀',
        name: 'схема.Größe_表😀',
        replicaIdentity: 'index',
        columns: [
          {
            name: 'Ключ',
            typeOid: 23,
            type: 'int4',
            typeModifier: -1,
            key: true,
          },
          {
            name: 'naïve col',
            typeOid: 1043,
            type: 'varchar',
            typeModifier: 14,
            key: false,
          },
          {
            name: 'u',
            typeOid: HIGH + 1,
            type: String(HIGH + 1),
            typeModifier: -1,
            key: false,
          },
        ],
      },
    });
  });

  it('tells schemas apart that look alike to LIKE (T03)', () => {
    const reading = decoder();
    const one = reading.decode(
      relationFrame({ oid: 1, schema: 'a_b', columns: [] }),
    );
    const two = reading.decode(
      relationFrame({ oid: 2, schema: 'axb', columns: [] }),
    );
    expect(one).toMatchObject({ relation: { name: 'a_b.t' } });
    expect(two).toMatchObject({ relation: { name: 'axb.t' } });
  });

  it.each([
    ['d', 'default'],
    ['n', 'nothing'],
    ['f', 'full'],
    ['i', 'index'],
  ])('reads the replica identity %s', (identity, replicaIdentity) => {
    expect(
      decoder().decode(relationFrame({ oid: 1, identity, columns: [] })),
    ).toMatchObject({ relation: { replicaIdentity } });
  });

  it('refuses an unknown replica identity, unknown flags and a name given twice', () => {
    const columns = [{ name: 'a' }, { name: 'a' }];
    const strange = relationFrame({ oid: 1, columns: [{ name: 'a' }] });
    strange[strange.length - 11] = 2; // flags of the column
    expect(
      [
        relationFrame({ oid: 1, identity: 'x', columns: [] }),
        strange,
        relationFrame({ oid: 1, columns }),
      ].map((frame) => decoder().decode(frame)),
    ).toStrictEqual([
      fault('relation: unknown replica identity'),
      fault('relation: unknown column flags'),
      fault('relation: two columns of one name'),
    ]);
  });

  it('asks for unknown types, changes nothing, and reads the same payload afterwards', () => {
    const types = new TypeTable('exact');
    const reading = new PgoutputDecoder(types);
    reading.decode(typeFrame(HIGH, 'public', '_mood'));
    const announce = relationFrame({
      oid: 1,
      columns: [{ name: 'moods', typeOid: HIGH }],
    });
    expect(reading.decode(announce)).toStrictEqual({
      kind: 'types-needed',
      oids: [HIGH],
    });
    expect(reading.decode(truncateFrame([1]))).toMatchObject({
      code: 'protocol_violation',
    });
    types.learn([HIGH], []);
    expect(reading.decode(announce)).toMatchObject({ kind: 'relation' });
    expect(reading.decode(truncateFrame([1]))).toMatchObject({
      kind: 'truncate',
    });
  });

  it('keeps the last good shape when a later announcement is malformed', () => {
    const reading = decoder();
    reading.decode(relationFrame({ oid: 1, table: 'good', columns: [] }));
    const longer = relationFrame({ oid: 1, table: 'bad', columns: [] });
    expect(reading.decode(Buffer.concat([longer, Buffer.of(0)]))).toStrictEqual(
      fault('relation: bytes left over'),
    );
    expect(reading.decode(truncateFrame([1]))).toMatchObject({
      relations: [{ table: 'good' }],
    });
  });

  it('turns an error of the type table into a fault', () => {
    const types = new TypeTable({
      getTypeParser: () => {
        throw new RangeError('secret');
      },
    });
    const frame = relationFrame({ oid: 1, columns: [{ name: 'a' }] });
    expect(new PgoutputDecoder(types).decode(frame)).toStrictEqual(
      fault('relation: RangeError'),
    );
  });
});

describe('types', () => {
  it('reads a type and gives its name to the columns announced later', () => {
    const reading = decoder();
    expect(reading.decode(typeFrame(HIGH, 'public', 'mood'))).toStrictEqual({
      kind: 'type',
      oid: HIGH,
      schema: 'public',
      name: 'mood',
    });
    const columns = [{ name: 'm', typeOid: HIGH }];
    expect(reading.decode(relationFrame({ oid: 1, columns }))).toMatchObject({
      relation: { columns: [{ type: 'mood' }] },
    });
  });

  it('names pg_catalog, which is an empty string on the wire', () => {
    expect(decoder().decode(typeFrame(1, '', 'int4'))).toMatchObject({
      schema: 'pg_catalog',
    });
  });

  it('announces nothing that is malformed', () => {
    const reading = decoder();
    reading.decode(
      Buffer.concat([typeFrame(HIGH, 'public', 'mood'), Buffer.of(0)]),
    );
    const columns = [{ name: 'm', typeOid: HIGH }];
    expect(reading.decode(relationFrame({ oid: 1, columns }))).toMatchObject({
      relation: { columns: [{ type: String(HIGH) }] },
    });
  });
});

function announced(): PgoutputDecoder {
  const reading = decoder();
  reading.decode(relationFrame({ oid: 1, table: 'a', columns: [] }));
  reading.decode(relationFrame({ oid: HIGH, table: 'b', columns: [] }));
  return reading;
}

describe('truncate', () => {
  it.each([
    [0, false, false],
    [1, true, false],
    [2, false, true],
    [3, true, true],
  ])(
    'reads options %i with all relations in order (Q01)',
    (options, cascade, restartIdentity) => {
      expect(
        announced().decode(truncateFrame([HIGH, 1], options)),
      ).toMatchObject({
        kind: 'truncate',
        relations: [{ table: 'b' }, { table: 'a' }],
        cascade,
        restartIdentity,
      });
    },
  );

  it('refuses unknown options, too few and too many relations, and unknown ones', () => {
    const short = truncateFrame([1, HIGH]).subarray(0, -4);
    const long = Buffer.concat([truncateFrame([1]), Buffer.alloc(4)]);
    const negative = truncateFrame([1]);
    negative.writeInt32BE(-1, 1);
    expect(
      [truncateFrame([1], 4), short, long, negative].map((frame) =>
        announced().decode(frame),
      ),
    ).toStrictEqual([
      fault('truncate: unknown options'),
      fault('truncate: ends early'),
      fault('truncate: bytes left over'),
      fault('truncate: negative length'),
    ]);
    expect(announced().decode(truncateFrame([77]))).toStrictEqual({
      kind: 'fault',
      code: 'protocol_violation',
      detail: 'truncate: table 77 was never announced',
    });
  });
});

describe('a scope', () => {
  const shape = (oid: number, table: string) =>
    relationFrame({ oid, table, columns: [] });
  const nameOf = (reading: PgoutputDecoder, oid: number): unknown => {
    const decoded = reading.decode(truncateFrame([oid]));
    return decoded.kind === 'truncate'
      ? decoded.relations[0]?.table
      : decoded.kind;
  };

  function scoped(): PgoutputDecoder {
    const reading = decoder();
    reading.decode(shape(1, 'a'));
    reading.decode(shape(2, 'b'));
    reading.scopes.beginScope();
    for (const frame of [shape(1, 'x'), shape(3, 'y'), shape(4, 'z')])
      reading.decode(frame);
    return reading;
  }

  it('has its own tables, and beside them those of the connection', () => {
    const reading = scoped();
    expect([1, 2, 3, 4].map((oid) => nameOf(reading, oid))).toEqual([
      'x',
      'b',
      'y',
      'z',
    ]);
    expect(reading.tables).toBe(2);
  });

  it('leaves at its end those that are kept, and tells what stays of the others', () => {
    const reading = scoped();
    expect(reading.scopes.endScope(new Set([3]))).toMatchObject([
      { table: 'a' },
    ]);
    expect([1, 2, 3, 4].map((oid) => nameOf(reading, oid))).toEqual([
      'a',
      'b',
      'y',
      'fault',
    ]);
    expect(reading.tables).toBe(3);
  });

  it('replaces what the connection had', () => {
    const reading = scoped();
    expect(reading.scopes.endScope(new Set([1, 3, 4]))).toEqual([]);
    expect(nameOf(reading, 1)).toBe('x');
    reading.scopes.beginScope();
    expect(nameOf(reading, 1)).toBe('x');
    reading.scopes.endScope(new Set());
    expect(reading.tables).toBe(4);
  });
});

describe('what is no message of protocol 1', () => {
  it('refuses an empty payload', () => {
    expect(decoder().decode(Buffer.of())).toStrictEqual(fault('empty message'));
  });

  it.each(['S', 'E', 'c', 'b', 'P', 'K', 'r', 'p', 'Z', '\0'])(
    'does not support the tag %j, and shows it alone (E08)',
    (tag) => {
      expect(decoder().decode(Buffer.from(`${tag}secret`))).toStrictEqual({
        kind: 'fault',
        code: 'unsupported_message',
        detail: `unknown message tag 0x${Buffer.from(tag).toString('hex')}`,
      });
    },
  );
});

function fault(detail: string) {
  return { kind: 'fault', code: 'decode_failure', detail };
}
