import { describe, expect, it } from 'vitest';
import {
  columnsOf,
  deleteDocument,
  insertDocument,
  truncateDocument,
  updateDocument,
} from '../../../../test/support/wal2json-documents.js';
import {
  catalogTable,
  Wal2jsonDecoding,
} from '../../../../test/support/wal2json-decoding.js';
import type { Relation } from '../../model/relation.js';
import { seenBefore } from './seen-before.js';

const ID = columnsOf('id');

describe('a table that the catalog was not asked for', () => {
  it('is asked for', () => {
    const decoding = new Wal2jsonDecoding([], [catalogTable(['id', 'v'])]);
    decoding.decode(truncateDocument());
    expect(decoding.asked).toEqual(['public.t']);
    expect(decoding.shapes).toEqual(['id* v']);
  });

  it('is what its rows show when the catalog does not have it', () => {
    const decoding = new Wal2jsonDecoding([]);
    decoding.decode(insertDocument({ columns: columnsOf('id', 'v') }));
    decoding.decode(
      updateDocument({ columns: columnsOf('id', 'v', 'w'), identity: ID }),
    );
    expect(decoding.decode(deleteDocument({ identity: ID }))).toMatchObject({
      old: { kind: 'key', record: { id: 'x' } },
    });
    expect(decoding.shapes).toEqual(['id* v', 'id* v w']);
    expect(decoding.asked).toEqual(['public.t']);
    const [{ oid } = { oid: 0 }] = decoding.announced;
    expect(oid).toBeGreaterThan(0);
    expect(oid).toBeLessThan(10_000);
    const anew = new Wal2jsonDecoding([]);
    anew.decode(deleteDocument({ identity: ID }));
    expect(anew.announced).toMatchObject([{ oid, replicaIdentity: 'default' }]);
  });

  it('has for a key what identifies its first row, when that is no primary key', () => {
    const decoding = new Wal2jsonDecoding([]);
    decoding.decode(deleteDocument({ identity: columnsOf('a', 'b'), key: [] }));
    expect(decoding.announced).toMatchObject([{ replicaIdentity: 'index' }]);
    expect(decoding.shapes).toEqual(['a* b*']);
  });
});

describe('the catalog as it is now', () => {
  const table = catalogTable(['id', 'v', 'big']);
  const update = updateDocument({
    columns: columnsOf('id', 'v'),
    identity: ID,
  });

  it('tells a dropped column from one that was left alone', () => {
    const decoding = new Wal2jsonDecoding([table]);
    decoding.decode(update);
    decoding.decoder.review([table]);
    expect(decoding.decode(update)).toMatchObject({ unchanged: ['big'] });
    decoding.decoder.review([catalogTable(['id', 'v', 'later'])]);
    expect(decoding.decode(update)).toMatchObject({ unchanged: [] });
    expect(decoding.shapes).toEqual(['id* v big', 'id* v']);
  });

  it('tells that another table has the name', () => {
    const decoding = new Wal2jsonDecoding([table]);
    decoding.decode(update);
    decoding.decoder.review([catalogTable(['id', 'v'], { oid: 20_007 })]);
    decoding.decode(update);
    expect(decoding.announced).toMatchObject([
      { oid: 20_000 },
      { oid: 20_007 },
    ]);
  });

  it('tells that a column is generated no more', () => {
    const decoding = new Wal2jsonDecoding([
      catalogTable(['id'], { generated: ['v'] }),
    ]);
    decoding.decode(insertDocument({ columns: columnsOf('id', 'v') }));
    decoding.decoder.review([catalogTable(['id', 'v'])]);
    decoding.decode(insertDocument({ columns: columnsOf('id', 'v') }));
    expect(decoding.shapes).toEqual(['id*', 'id* v']);
  });

  it('is nothing to a table that was not asked for', () => {
    const decoding = new Wal2jsonDecoding([table]);
    decoding.decoder.review([catalogTable(['id'], { table: 'other' })]);
    decoding.decode(update);
    expect(decoding.shapes).toEqual(['id* v big']);
  });
});

describe('a column that came after the checkpoint', () => {
  const stored: Relation = {
    ...catalogTable([]),
    name: 'public.t',
    columns: catalogTable(['id', 'v']).columns.map((column) => ({
      ...column,
      type: 'text',
    })),
  };
  const now = catalogTable(['id', 'v', 'later']);

  it('counts from the first row that has it', () => {
    const decoding = new Wal2jsonDecoding([seenBefore(now, stored)], [now]);
    decoding.decode(
      updateDocument({ columns: columnsOf('id', 'v'), identity: ID }),
    );
    decoding.decode(insertDocument({ columns: columnsOf('id', 'v') }));
    decoding.decode(insertDocument({ columns: columnsOf('id', 'v', 'later') }));
    expect(decoding.shapes).toEqual(['id* v', 'id* v later']);
  });

  it('is there at once when no shape was stored of this table', () => {
    expect(seenBefore(now, null)).toBe(now);
  });
});
