import { describe, expect, it } from 'vitest';
import {
  type CatalogDecoding,
  catalogTable,
} from '../../../../test/support/catalog-decoding.js';
import { pglogicalDecoding } from '../../../../test/support/pglogical-decoding.js';
import {
  insertFrame,
  relationFrame,
} from '../../../../test/support/pglogical-frames.js';
import type { CatalogTable } from '../../model/relation.js';
import type { Decoded } from '../decoder.js';

const QUEUE = relationFrame({
  oid: 90,
  schema: 'pglogical',
  table: 'queue',
  columns: ['queued_at', 'role', 'replication_sets', 'message_type', 'message'],
});

function queued(kind: string, message: string): Buffer {
  return insertFrame(90, [
    '2026-01-02 03:04:05+00',
    'postgres',
    '{default}',
    kind,
    message,
  ]);
}

function truncated(schema: string, table: string): Buffer {
  const content = { schema_name: schema, table_name: table };
  return queued('T', JSON.stringify(content));
}

function withQueue(catalog: readonly CatalogTable[] = []): CatalogDecoding {
  const decoding = pglogicalDecoding(catalog);
  decoding.decode(QUEUE);
  return decoding;
}

function relationOf(decoded: Decoded): unknown {
  if (decoded.kind === 'truncate') return decoded.relations[0];
  return decoded.kind === 'relation' ? decoded.relation : null;
}

describe("pglogical's own queue", () => {
  it('is not announced, and the catalog is not asked about it', () => {
    const decoding = pglogicalDecoding([]);
    expect(decoding.decode(QUEUE)).toStrictEqual({ kind: 'aside' });
    expect(decoding.asked).toEqual([]);
  });

  it.each([
    ['Q', '"create table public.u (a int)"'],
    ['S', '{"schema_name":"public","sequence_name":"s","last_value":"1"}'],
    ['A', '{"schema_name":"public","table_name":"t"}'],
  ])('has rows of kind %s that concern nobody', (kind, message) => {
    expect(withQueue().decode(queued(kind, message))).toStrictEqual({
      kind: 'aside',
    });
  });

  it('tells of a truncation, with the table as it was announced last', () => {
    const decoding = withQueue([catalogTable(1, ['*id:23'])]);
    decoding.decode(relationFrame({ oid: 3, columns: ['*id'] }));
    const announced = decoding.decode(
      relationFrame({ oid: 1, columns: ['*id'] }),
    );
    decoding.decode(relationFrame({ oid: 2, table: 'u', columns: [] }));
    const decoded = decoding.decode(truncated('public', 't'));
    expect(decoded).toMatchObject({
      kind: 'truncate',
      cascade: false,
      restartIdentity: false,
    });
    expect(relationOf(decoded)).toBe(relationOf(announced));
  });

  it('tells of the table that has the name now', () => {
    const decoding = withQueue();
    for (const [oid, table] of [
      [1, 'u'],
      [2, 't'],
      [1, 't'],
    ] as const) {
      decoding.decode(relationFrame({ oid, table, columns: [] }));
    }
    const decoded = decoding.decode(truncated('public', 't'));
    expect(relationOf(decoded)).toMatchObject({ oid: 1 });
    const other = decoding.decode(truncated('other', 't'));
    expect(relationOf(other)).toMatchObject({ oid: 0, name: 'other.t' });
  });

  it('asks the catalog about a truncated table that was not announced', () => {
    const decoding = withQueue([catalogTable(1, ['*id:23', 'm:20000'])]);
    const decoded = decoding.decode(truncated('public', 't'));
    expect(decoding.asked).toEqual(['public.t', '20000']);
    expect(relationOf(decoded)).toMatchObject({
      oid: 1,
      name: 'public.t',
      columns: [{ name: 'id', type: 'int4' }, { name: 'm' }],
    });
    expect(decoding.decoder.tables).toBe(1); // the queue
  });

  it('tells of the truncation of a table that is gone', () => {
    const decoded = withQueue().decode(truncated('схема', 'a "b"'));
    expect(relationOf(decoded)).toMatchObject({
      schema: 'схема',
      table: 'a "b"',
      columns: [],
    });
  });

  it.each(['null', '{}', '{"schema_name":"public"}', '"public.t"', '{', '[1]'])(
    'refuses a truncation without a table: %s',
    (message) => {
      expect(withQueue().decode(queued('T', message))).toStrictEqual({
        kind: 'fault',
        code: 'decode_failure',
        detail: 'insert: a truncation without the name of its table',
      });
    },
  );

  it('is not a table of that name in another schema', () => {
    const decoding = pglogicalDecoding([]);
    const frame = relationFrame({ oid: 1, table: 'queue', columns: [] });
    expect(decoding.decode(frame)).toMatchObject({ kind: 'relation' });
  });
});
