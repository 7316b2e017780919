import { expect, it } from 'vitest';
import type { PublishedTable } from '../server/published-table.js';
import { selectFrom } from './table-query.js';

const TABLE: PublishedTable = {
  oid: 16_400,
  schema: 'public',
  table: 'T',
  name: 'public.T',
  quotedName: 'public."T"',
  partitioned: false,
  replicaIdentity: 'default',
  columns: ['id', '"A ""b"""'].map((quotedName) => ({
    name: quotedName,
    quotedName,
    typeOid: 23,
    typeModifier: -1,
    key: false,
  })),
  orderKey: null,
  identityKey: null,
  rowFilter: null,
  estimatedRows: null,
  estimatedRowBytes: null,
};

it('reads a plain table alone', () => {
  expect(selectFrom(TABLE)).toEqual({
    columns: 'id, "A ""b"""',
    from: 'ONLY public."T"',
    filter: null,
  });
});

it('reads a partitioned table with its partitions', () => {
  expect(selectFrom({ ...TABLE, partitioned: true }).from).toBe('public."T"');
});

it('keeps a filter together', () => {
  const rowFilter = '(a) or (b)';
  expect(selectFrom({ ...TABLE, rowFilter }).filter).toBe('((a) or (b))');
});

it('reads rows of a table without columns', () => {
  expect(selectFrom({ ...TABLE, columns: [] }).columns).toBe('');
});
