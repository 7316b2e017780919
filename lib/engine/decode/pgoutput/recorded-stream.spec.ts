import { describe, expect, it } from 'vitest';
import { recordedFrames } from '../../../../test/support/recorded-frames.js';
import { parseLsn } from '../../model/lsn.js';
import { TypeTable } from '../../values/type-table.js';
import type { Decoded } from '../decoder.js';
import { PgoutputDecoder } from './pgoutput-decoder.js';

const decoder = new PgoutputDecoder(new TypeTable('exact'));
const messages = recordedFrames('pgoutput-v1.json').map((frame) =>
  decoder.decode(frame),
);

function rowsOf(table: string): Decoded[] {
  return messages.filter(
    (message) =>
      (message.kind === 'insert' ||
        message.kind === 'update' ||
        message.kind === 'delete') &&
      message.relation.name === table,
  );
}

const LARGE = { x: 'x'.repeat(2100), y: 'y'.repeat(2100), k: 'k'.repeat(2100) };

describe('a recorded stream of PostgreSQL 18', () => {
  it('has every message of protocol 1 and one fault', () => {
    const kinds = new Set(messages.map(({ kind }) => kind));
    expect([...kinds].toSorted()).toEqual([
      'begin',
      'commit',
      'delete',
      'fault',
      'insert',
      'message',
      'origin',
      'relation',
      'truncate',
      'type',
      'update',
    ]);
    expect(messages.filter(({ kind }) => kind === 'fault')).toHaveLength(1);
  });

  it('names the shape of a table with an enum and a domain', () => {
    expect(messages[3]).toMatchObject({
      relation: {
        name: 'public.t',
        replicaIdentity: 'default',
        columns: [
          { name: 'id', type: 'int4', key: true, typeModifier: -1 },
          { name: 'v', type: 'text', key: false },
          { name: 'big', type: 'text' },
          { name: 'm', type: 'mood' },
          { name: 'd', type: 'int4' },
        ],
      },
    });
  });

  it('has NULL, empty text, TOAST, a changed key and an identity that changes', () => {
    const rows = rowsOf('public.t');
    expect(rows).toMatchObject([
      {
        kind: 'insert',
        record: { id: 1, v: null, big: LARGE.x, m: 'ok', d: 7 },
      },
      { kind: 'insert', record: { id: 2, v: '', big: null, m: null, d: null } },
      { kind: 'update', unchanged: ['big'], old: null },
      { kind: 'update', unchanged: ['big'] },
      { kind: 'delete' },
      {
        kind: 'update',
        record: { id: 2, v: 'full', big: null, m: null, d: null },
        unchanged: [],
        old: {
          kind: 'full',
          record: { id: 2, v: '', big: null, m: null, d: null },
        },
      },
      { kind: 'delete' },
    ]);
    expect(rows[2]).toHaveProperty('record', {
      id: 1,
      v: 'changed',
      m: 'ok',
      d: 7,
    });
    expect(rows[3]).toHaveProperty('record', {
      id: 3,
      v: 'changed',
      m: 'ok',
      d: 7,
    });
    expect(rows[3]).toHaveProperty('old', { kind: 'key', record: { id: 1 } });
    expect(rows[4]).toHaveProperty('old', { kind: 'key', record: { id: 3 } });
    expect(rows[6]).toHaveProperty('old', { kind: 'key', record: { id: 2 } });
  });

  it('has full old rows with TOAST and NULL and no key', () => {
    const row = { a: 1, b: null, big: LARGE.y };
    expect(rowsOf('public.f')).toMatchObject([
      { kind: 'insert', record: { a: null, b: null, big: null } },
      { kind: 'insert', record: row },
      {
        kind: 'update',
        record: { a: 1, b: 'b', big: LARGE.y },
        unchanged: [],
        old: { kind: 'full', record: row },
      },
      {
        kind: 'delete',
        old: { kind: 'full', record: { a: null, b: null, big: null } },
      },
      {
        kind: 'delete',
        old: { kind: 'full', record: { a: 1, b: 'b', big: LARGE.y } },
      },
    ]);
  });

  it('has a key so large that the new row leaves it out', () => {
    expect(rowsOf('public.k')).toMatchObject([
      { kind: 'insert', record: { id: LARGE.k, v: 1 } },
      {
        kind: 'update',
        record: { id: LARGE.k, v: 2 },
        unchanged: [],
        old: { kind: 'key', record: { id: LARGE.k } },
      },
    ]);
  });

  it('has a row without columns', () => {
    expect(rowsOf('public.z')).toMatchObject([{ kind: 'insert', record: {} }]);
  });

  it('has names of many bytes and of many meanings', () => {
    const [row] = rowsOf('схема.Größe_表😀');
    if (row?.kind !== 'insert') throw new Error('no row');
    expect(Object.entries(row.record)).toEqual([
      ['Ключ', 1],
      ['naïve col', 'ok'],
      ['__proto__', 'p'],
      ['constructor', 'c'],
      ['toString', 's'],
    ]);
  });

  it('has two truncations with all their tables', () => {
    const relations = [{ name: 'public.ta' }, { name: 'public.tb' }];
    expect(messages.filter(({ kind }) => kind === 'truncate')).toMatchObject([
      { relations, cascade: true, restartIdentity: false },
      { relations, cascade: false, restartIdentity: true },
    ]);
  });

  it('tells JSON null from SQL NULL', () => {
    expect(rowsOf('public.j')).toMatchObject(
      ['null', null, '"null"', '""'].map((j, i) => ({
        record: { id: i + 1, j },
      })),
    );
  });

  it('has unsigned numbers', () => {
    expect(rowsOf('public.o')).toMatchObject([
      { record: { id: 1, o: 4294967295, x: '18446744073709551615' } },
    ]);
  });

  it('has messages inside and outside a transaction', () => {
    expect(messages.filter(({ kind }) => kind === 'message')).toStrictEqual([
      {
        kind: 'message',
        transactional: true,
        lsn: parseLsn('0/1C266D8'),
        prefix: 'prefix',
        content: Buffer.from('in'),
      },
      {
        kind: 'message',
        transactional: false,
        lsn: parseLsn('0/1C26748'),
        prefix: 'prefix',
        content: Buffer.of(0, 255),
      },
    ]);
  });

  it('has an origin, whose transaction has the time of its own server', () => {
    const at = messages.findIndex(({ kind }) => kind === 'origin');
    expect(messages.slice(at - 1, at + 1)).toStrictEqual([
      {
        kind: 'begin',
        finalLsn: parseLsn('0/1C269D0'),
        commitTimeMicros: 1_767_323_045_123_456n,
        xid: 0x343,
      },
      { kind: 'origin', lsn: parseLsn('16/B374D848'), name: 'elsewhere' },
    ]);
    expect(messages[at + 3]).toStrictEqual({
      kind: 'commit',
      commitLsn: parseLsn('0/1C269D0'),
      endLsn: parseLsn('0/1C26A18'),
      commitTimeMicros: 1_767_323_045_123_456n,
    });
  });

  it('refuses the insert that a row filter made of an update and that lacks a value', () => {
    expect(messages.at(-2)).toStrictEqual({
      kind: 'fault',
      code: 'insert_incomplete',
      detail: 'insert: column "big" of public.filtered came without its value',
    });
  });
});
