import { describe, expect, it } from 'vitest';
import { catalogTable } from '../../../../test/support/catalog-decoding.js';
import { pglogicalDecoding } from '../../../../test/support/pglogical-decoding.js';
import { relationFrame } from '../../../../test/support/pglogical-frames.js';
import type { Relation } from '../../model/relation.js';
import { seenLast } from './seen-last.js';

describe('a column that the stream still has and the catalog has no more', () => {
  const now = catalogTable(1, ['*id:23']);
  const before = catalogTable(1, ['*id:23', 'v:1043']);
  const stored: Relation = {
    ...before,
    name: 'public.t',
    columns: before.columns.map((column) => ({ ...column, type: 'varchar' })),
  };
  const frame = relationFrame({ oid: 1, columns: ['*id', 'v'] });

  it('has the type that was stored with the checkpoint', () => {
    const decoding = pglogicalDecoding([now], [seenLast(now, stored)]);
    expect(decoding.decode(frame)).toMatchObject({
      relation: { columns: [{ type: 'int4' }, { type: 'varchar' }] },
    });
  });

  it('has none that anybody knows where nothing was stored', () => {
    const decoding = pglogicalDecoding([now], [seenLast(now, null)]);
    expect(decoding.decode(frame)).toMatchObject({
      relation: { columns: [{ type: 'int4' }, { type: 'unknown' }] },
    });
  });
});
