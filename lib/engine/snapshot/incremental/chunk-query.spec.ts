import { describe, expect, it } from 'vitest';
import type {
  KeyColumn,
  PublishedTable,
} from '../../server/published-table.js';
import { chunkQuery, lockSql } from './chunk-query.js';

function key(name: string, type = 'pg_catalog.int4', schema = 'pg_catalog') {
  return {
    name,
    quotedName: name,
    quotedType: type,
    operatorSchema: schema,
    quotedCollation: null,
  } satisfies KeyColumn;
}

const TABLE: PublishedTable = {
  oid: 1,
  schema: 's',
  table: 'T',
  name: 's.T',
  quotedName: 's."T"',
  partitioned: false,
  replicaIdentity: 'default',
  columns: ['a', 'b', 'c'].map((name) => ({
    name,
    quotedName: name,
    typeOid: 23,
    typeModifier: -1,
    key: name !== 'c',
  })),
  orderKey: null,
  identityKey: null,
  rowFilter: null,
  estimatedRows: null,
  estimatedRowBytes: null,
};

describe('the query of a chunk', () => {
  it('begins at the first row', () => {
    const { sql, settings } = chunkQuery(TABLE, {
      kind: 'ordered',
      order: [key('a')],
      after: null,
      limit: 10,
    });
    expect(sql).toBe(
      'COPY (SELECT a, b, c FROM ONLY s."T" ORDER BY a LIMIT 10) TO STDOUT',
    );
    expect([...settings]).toEqual([]);
  });

  it('goes on behind a row, whose values are in settings', () => {
    const { sql, settings } = chunkQuery(
      { ...TABLE, rowFilter: 'c > 1 or a > 2' },
      {
        kind: 'ordered',
        order: [key('b'), key('a')],
        after: ["x'y", '2'],
        limit: 10,
      },
    );
    expect(sql).toBe(
      'COPY (SELECT a, b, c FROM ONLY s."T" WHERE (c > 1 or a > 2) AND (b, a) OPERATOR(pg_catalog.>)' +
        " (pg_catalog.current_setting('nestjs_replicant.key_0')::pg_catalog.int4," +
        " pg_catalog.current_setting('nestjs_replicant.key_1')::pg_catalog.int4)" +
        ' ORDER BY b, a LIMIT 10) TO STDOUT',
    );
    expect([...settings]).toEqual([
      ['nestjs_replicant.key_0', "x'y"],
      ['nestjs_replicant.key_1', '2'],
    ]);
  });

  it('names the schema of operators that are elsewhere, and has them searched where there are several', () => {
    const range = {
      kind: 'ordered',
      after: ['x', '1'],
      limit: 10,
    } as const;
    const text = key('a', '"Ext".citext', '"Ext"');
    const alone = chunkQuery(TABLE, { ...range, order: [text] });
    expect(alone.sql).toContain('(a) OPERATOR("Ext".>) (');
    expect(alone.settings.has('search_path')).toBe(false);
    const both = chunkQuery(TABLE, { ...range, order: [text, key('b')] });
    expect(both.sql).toContain('(a, b) > (');
    expect(both.settings.get('search_path')).toBe('"Ext"');
  });

  it('finds rows by keys', () => {
    const { sql, settings } = chunkQuery(TABLE, {
      kind: 'keys',
      columns: [key('a'), key('b', 'pg_catalog.text')],
      keys: [
        ['1', 'x'],
        ['2', 'y'],
      ],
    });
    expect(sql).toBe(
      'COPY (SELECT a, b, c FROM ONLY s."T" WHERE (a, b) OPERATOR(pg_catalog.=) ANY' +
        ' (SELECT nestjs_replicant_key.v0::pg_catalog.int4, nestjs_replicant_key.v1::pg_catalog.text' +
        " FROM ROWS FROM (pg_catalog.unnest(pg_catalog.current_setting('nestjs_replicant.key_0')::pg_catalog.text[])," +
        " pg_catalog.unnest(pg_catalog.current_setting('nestjs_replicant.key_1')::pg_catalog.text[]))" +
        ' AS nestjs_replicant_key(v0, v1))) TO STDOUT',
    );
    expect([...settings]).toEqual([
      ['nestjs_replicant.key_0', ['1', '2']],
      ['nestjs_replicant.key_1', ['x', 'y']],
    ]);
  });

  it('reads partitions with their root', () => {
    const partitioned = { ...TABLE, partitioned: true };
    expect(chunkQuery(partitioned, { kind: 'whole' }).sql).toBe(
      'COPY (SELECT a, b, c FROM s."T") TO STDOUT',
    );
    expect(lockSql(partitioned)).toBe('LOCK TABLE s."T" IN ACCESS SHARE MODE');
    expect(lockSql(TABLE)).toBe('LOCK TABLE ONLY s."T" IN ACCESS SHARE MODE');
  });
});
