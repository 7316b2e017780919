import { describe, expect, it } from 'vitest';
import {
  beginDocument,
  commitDocument,
  document,
  insertDocument,
  messageDocument,
  truncateDocument,
  updateDocument,
  deleteDocument,
} from '../../../../test/support/wal2json-documents.js';
import {
  catalogTable,
  Wal2jsonDecoding,
} from '../../../../test/support/wal2json-decoding.js';
import { TypeTable } from '../../values/type-table.js';
import type { Decoded } from '../decoder.js';
import { Wal2jsonDecoder } from './wal2json-decoder.js';

const TABLE = catalogTable(['id', 'v']);

function decode(bytes: Buffer): Decoded {
  return new Wal2jsonDecoding([TABLE]).decode(bytes);
}

function fault(detail: string, code = 'decode_failure'): object {
  return { kind: 'fault', code, detail };
}

it('messages are set aside where nobody wants them', () => {
  const decoder = new Wal2jsonDecoder(new TypeTable('exact'), [TABLE], false);
  expect(decoder.decode(messageDocument('prefix', 'content'))).toEqual({
    kind: 'aside',
  });
});

describe('transactions', () => {
  it('begin where their commit record starts', () => {
    expect(decode(beginDocument({ xid: 0xfedc_ba98 }))).toStrictEqual({
      kind: 'begin',
      finalLsn: 10n,
      commitTimeMicros: 1_767_323_045_123_456n,
      xid: 0xfedc_ba98,
    });
  });

  it('commit with both ends of the record', () => {
    expect(decode(commitDocument())).toStrictEqual({
      kind: 'commit',
      commitLsn: 10n,
      endLsn: 20n,
      commitTimeMicros: 1_767_323_045_123_456n,
    });
  });

  it.each([
    ['lsn', { lsn: undefined }],
    ['nextlsn', { nextlsn: undefined }],
  ])('do not commit without %s: none is invented', (_, members) => {
    expect(decode(commitDocument(members))).toStrictEqual(
      fault('commit: came without its LSN', 'decoder/lsn_missing'),
    );
  });

  it.each([
    ['time', { timestamp: 'yesterday' }, 'no time'],
    ['position', { lsn: 'A' }, 'no LSN'],
    ['xid', { xid: -1 }, 'negative xid'],
    ['whole xid', { xid: 2 ** 32 }, 'no number of 32 bits'],
    ['xid in digits', { xid: 7.5 }, 'the time is missing'],
  ])('are refused without a %s', (_, members, detail) => {
    expect(decode(commitDocument(members))).toStrictEqual(
      fault(`commit: ${detail}`),
    );
  });
});

describe('logical decoding messages', () => {
  it.each([true, false])('say whether they are transactional: %s', (flag) => {
    expect(decode(messageDocument('pre"fix\n', 'é', flag))).toStrictEqual({
      kind: 'message',
      transactional: flag,
      lsn: 5n,
      prefix: 'pre"fix\n',
      content: Buffer.from('é'),
    });
  });

  it('keep content that is no UTF-8 byte by byte', () => {
    const bytes = Buffer.from(messageDocument('p', '???').toString('latin1'));
    bytes.write('\u00ff\u00c3(', bytes.indexOf('???'), 'latin1');
    expect(decode(bytes)).toMatchObject({
      content: Buffer.of(0xff, 0xc3, 0x28),
    });
  });

  it('are refused with a prefix that is no UTF-8', () => {
    const bytes = messageDocument('???', 'c');
    bytes.write('\u00ff', bytes.indexOf('???'), 'latin1');
    expect(decode(bytes)).toStrictEqual(
      fault('message: string that is not UTF-8'),
    );
  });

  it('copy their content', () => {
    const bytes = messageDocument('p', 'content');
    const message = decode(bytes);
    bytes.fill(0);
    expect(message).toMatchObject({ content: Buffer.from('content') });
  });
});

describe('truncations', () => {
  it('name one table each, and no option', () => {
    const decoding = new Wal2jsonDecoding([TABLE]);
    const truncate = decoding.decode(truncateDocument());
    expect(decoding.announced).toMatchObject([{ name: 'public.t' }]);
    expect(truncate).toStrictEqual({
      kind: 'truncate',
      relations: decoding.announced,
      cascade: false,
      restartIdentity: false,
    });
  });
});

describe('what is no document', () => {
  it.each([
    ['nothing', '', 'empty message'],
    ['no JSON', 'BEGIN 700', 'document: the action is missing'],
    ['no object', '[]', 'document: the action is missing'],
    ['no action', '{"xid":1}', 'document: the action is missing'],
    ['an action of another kind', '{"action":1}', 'document: no string'],
    ['format 1', '{"change":[]}', 'document: the action is missing'],
  ])('is refused: %s', (_, text, detail) => {
    expect(decode(Buffer.from(text))).toStrictEqual(fault(detail));
  });

  it('is an unknown action', () => {
    expect(decode(document({ action: 'S' }))).toStrictEqual(
      fault('document: unknown action', 'unsupported_message'),
    );
  });

  it.each([5_000, 1_000_000])('overflows no stack %i levels deep', (depth) => {
    const row = insertDocument({
      columns: [{ name: 'id', value: 'VALUE' }],
    }).toString();
    const deep = '['.repeat(depth) + ']'.repeat(depth);
    expect(decode(Buffer.from(row.replace('"VALUE"', deep)))).toStrictEqual(
      fault('insert: column "id" of public.t came as other JSON than a string'),
    );
    expect(decode(Buffer.from(deep))).toMatchObject({ kind: 'fault' });
  });
});

it.each([
  ['a truncation with an old row', deleteDocument({ identity: [] }), 'T'],
  ['a truncation with a new row', updateDocument({ columns: [] }), 'T'],
  ['an insert without a new row', deleteDocument({ identity: [] }), 'I'],
  [
    'an insert with an old row',
    updateDocument({ columns: [], identity: [] }),
    'I',
  ],
  ['a delete without an old row', insertDocument({ columns: [] }), 'D'],
  [
    'a delete with a new row',
    updateDocument({ columns: [], identity: [] }),
    'D',
  ],
])('refuses %s', (_, bytes, action) => {
  bytes.write(action, '{"action":"'.length);
  expect(decode(bytes)).toMatchObject({
    kind: 'fault',
    code: 'decode_failure',
  });
});

it('reads a document among others, in the same buffer', () => {
  const decoding = new Wal2jsonDecoding([TABLE]);
  const row = insertDocument({
    columns: [
      { name: 'id', value: '1' },
      { name: 'v', value: 'é' },
    ],
  });
  const among = Buffer.concat([Buffer.alloc(9, '{"'), row, Buffer.from('}}')]);
  expect(decoding.decode(among, 9, 9 + row.length)).toEqual(
    decoding.decode(row),
  );
  expect(decoding.decode(among, 9, 10 + row.length)).toStrictEqual(
    fault('insert: bytes left over'),
  );
  expect(decoding.decode(among, 9, 8 + row.length)).toStrictEqual(
    fault('insert: the end is missing'),
  );
});

it('counts announced tables', () => {
  const decoding = new Wal2jsonDecoding([
    TABLE,
    catalogTable(['id'], { oid: 20_001, table: 'u' }),
  ]);
  expect(decoding.decoder.tables).toBe(0);
  decoding.decode(truncateDocument('u'));
  decoding.decode(truncateDocument('u'));
  expect(decoding.decoder.tables).toBe(1);
  expect(decoding.announced).toHaveLength(1);
});
